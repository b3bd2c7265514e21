"""Rules about conditionals that save no time. JX206: under ``vmap``, all branches run for every element.
JX212: work for one branch is done before the conditional, so that it is done for the other branch, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxscope.analysis.hlo.batched_branches import BatchedBranches, FunctionWork
from jaxscope.analysis.loop_calls import LONGEST
from jaxscope.analysis.stablehlo.branch_work import BranchWork
from jaxscope.analysis.syntax import CONDITIONALS, calls_from, last_name, syntax
from jaxscope.model import sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import takes_time, users
from jaxscope.rules.finding_parts import MOST, about, running_share
from jaxscope.rules.line_lists import known_lines
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Names, Percent, message

FEWEST = 0.2  # a branch with a smaller share of the operations of its program is not reported
MUCH = 0.5  # with at least this share, the finding is a warning
_BRANCH_PARAMETERS = frozenset({"true_fun", "false_fun", "branches"})


@rule("JX206", "branches-under-vmap", WARNING)
def branches_under_vmap(run: Run) -> Iterator[Finding]:
    """Yield a finding for each ``cond`` or ``switch`` that computes a costly branch for every element,
    because it is under ``vmap``."""
    for p, f, texts in users(run):
        batched = texts.hlo.batched_branches if texts.hlo is not None else None
        if batched is None or not batched.operations or not takes_time(run, p, f, batched.operations):
            continue
        for line in batched.lines:
            source = sources.of(run)(line.file)
            calls = (c for c in calls_from(source, line.line) if last_name(c.func) in CONDITIONALS)
            for call in calls:
                branches = [*_branches(call)]
                if not any(_has_work(batched, line.file, b) for b in branches):
                    branches = [*_listed(source, batched, line.file)]
                found = _largest(batched, line, branches)
                if found is None:
                    continue
                branch, share = found
                same = _called_by_all(batched, branches)
                if same is not None:
                    share -= share / len(branches)  # the work of one branch is needed
                if share < FEWEST:
                    continue
                text = message(
                    "branches-under-vmap",
                    function=f.display_name,
                    conditional=ast.unparse(call.func),
                    branch=message("branch-has-share", branch=_short(branch), share=Percent(share))
                    if same is None
                    else message("branches-call-one", called=same, n=len(branches), share=Percent(share)),
                )
                yield Finding(
                    code="JX206",
                    severity=WARNING if share >= MUCH else NOTE,
                    certainty=LIKELY,
                    **about(p, f, text, line),
                    fix=_instead(call, branch)
                    if same is None
                    else Fix(message("fix-select-arguments", function=same), "branch_outside_vmap"),
                    seconds=running_share(run, f, share),
                    at_most=True,
                )


@rule("JX212", "work-before-branch", WARNING)
def work_before_branch(run: Run) -> Iterator[Finding]:
    """Yield at most one finding for each line with a conditional. If several functions contain the line, the
    finding is about the function with the largest share of such work."""
    lines: dict[Frame, list[tuple[BranchWork, Program, Function]]] = {}
    for p, f, texts in users(run):
        for one in texts.stablehlo.branch_work if texts.stablehlo is not None else ():
            if one.share >= FEWEST and takes_time(run, p, f, one.operations):
                lines.setdefault(one.source, []).append((one, p, f))
    for line, every in lines.items():
        one, p, f = max(every, key=lambda item: item[0].share)
        others = tuple(dict.fromkeys(g.display_name for *_, g in every if g.id != f.id))
        at = tuple(dict.fromkeys(str(frame.line) for frame in one.lines))
        text = message(
            "work-before-branch",
            function=f.display_name,
            share=Percent(one.share),
            lines=known_lines(at, MOST),
            also=message("also-in-functions", functions=Names(others, MOST)) if others else None,
        )
        yield Finding(
            code="JX212",
            severity=WARNING if one.share >= MUCH else NOTE,
            certainty=LIKELY,
            **about(p, f, text, line),
            fix=Fix(message("fix-compute-in-branch"), "branch"),
            seconds=running_share(run, f, one.share),
            at_most=True,
        )


def _has_work(batched: BatchedBranches, file: str, branch: ast.expr) -> bool:
    return any(_is_of(w, file, branch) for w in batched.functions)


def _listed(source: str | None, batched: BatchedBranches, file: str) -> Iterator[ast.expr]:
    """Yield the branches of a conditional that gets them in a variable: the items of the only list or tuple
    in ``source`` (the text of ``file``) that names at least two functions with operations in the program;
    nothing if there are several."""
    lists = [
        node.elts
        for node in ast.walk(syntax(source).tree)
        if isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1
        if sum(isinstance(e, ast.Name) and _has_work(batched, file, e) for e in node.elts) > 1
    ]
    if len(lists) == 1:
        yield from lists[0]


def _largest(
    batched: BatchedBranches, line: Frame, branches: Sequence[ast.expr]
) -> tuple[ast.expr, float] | None:
    """Return (branch, share): the branch with the most operations, and its share of all operations of the
    program. Return None if the share is less than FEWEST, or unknown."""
    best: tuple[ast.expr, float] | None = None
    # Stack frames do not distinguish lambdas on one line. Each gets the share of all; the longest is named.
    for branch in sorted(branches, key=lambda b: -len(ast.unparse(b))):
        works = [w for w in batched.functions if _is_of(w, line.file, branch)]
        unknown = sum(w.unknown for w in works)
        share = sum(w.operations for w in works) / batched.operations
        if batched.unknown == unknown and share >= FEWEST and (best is None or share > best[1]):
            best = branch, min(share, 1.0)
    return best


def _called_by_all(batched: BatchedBranches, branches: Sequence[ast.expr]) -> str | None:
    """Return the name of a function that all ``branches`` call and that has operations in the program. Return
    None if there is none, or unless ``branches`` are several lambdas."""
    if len(branches) < 2 or not all(isinstance(b, ast.Lambda) for b in branches):
        return None
    worked = {w.function.rpartition(".")[2] for w in batched.functions if w.line is None and w.operations}
    called = [{last_name(n.func) for n in ast.walk(b) if isinstance(n, ast.Call)} for b in branches]
    return next(iter(sorted(worked.intersection(*called))), None)


def _branches(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the branches that ``call``, a call of ``cond`` or ``switch``, gets, as expressions of the
    source."""
    positional = call.args[1:2] if last_name(call.func) == "switch" else call.args[1:3]
    for value in (*positional, *(k.value for k in call.keywords if k.arg in _BRANCH_PARAMETERS)):
        yield from value.elts if isinstance(value, (ast.Tuple, ast.List)) else (value,)


def _is_of(work: FunctionWork, file: str, branch: ast.expr) -> bool:
    """Return whether ``work`` counts the operations of the function ``branch``, an expression in ``file``."""
    if isinstance(branch, ast.Lambda):
        last = branch.end_lineno or branch.lineno
        return work.file == file and work.line is not None and branch.lineno <= work.line <= last
    if isinstance(branch, ast.Call) and branch.args:  # functools.partial(f, x), jax.checkpoint(f)
        return _is_of(work, file, branch.args[0])
    return work.line is None and work.function.rpartition(".")[2] == last_name(branch)


def _instead(call: ast.Call, branch: ast.expr) -> Fix:
    """Return the advice for ``call``, a conditional under ``vmap`` whose ``branch`` costs much: to call it
    outside ``vmap``, or to make the branch cheaper."""
    conditional = ast.unparse(call.func)
    if last_name(call.func) == "switch" or not call.args:
        return Fix(message("fix-branch-cheaper", conditional=conditional), "branch_outside_vmap")
    predicate = _short(call.args[0])
    counts = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(call.args[0]))
    if branch not in call.args[1:2]:
        predicate = f"~({predicate})"
    if counts:  # step % every == 0
        words = message("fix-counter-without-vmap", predicate=_short(call.args[0]))
    else:
        words = message("fix-branch-outside-vmap", conditional=conditional, predicate=predicate)
    return Fix(words, "branch_outside_vmap", {"predicate": predicate})


def _short(expression: ast.expr) -> str:
    """Return ``expression`` as source, cut to LONGEST characters."""
    text = ast.unparse(expression)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
