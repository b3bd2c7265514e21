"""Functions of the user in which several lines together make JAX compile operations outside jit (JX133), and
which of them, or of their callers, is to be jitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import TypeAlias

from jaxscope.analysis import line_names
from jaxscope.analysis.source_lines import loop_around, loops_around
from jaxscope.model import payers, sources
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules import inner_loops, jit_obstacles, loop_functions, outside_jit
from jaxscope.rules.line_lists import line_numbers
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Evidence, Finding, Fix, slugs_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS, LOOPS
from jaxscope.schema.messages import Count, Names, Seconds, message

FEWEST = 20  # compilations of a function that is reported
# A function with few compilations on each line is reported from this number of lines, and this share of all
# seconds, on.
FEW_LINES, TOGETHER = 3, 0.25
WHOLE = 0.05  # the same share for a function that jit can probably trace as a whole
DIRECT = 5  # at least one of so many compilations of such a function is on its own lines
LISTED = 5  # lines in the evidence
MANY_LINES, NAMED = 8, 4  # of more lines, only the costliest are named
_Part: TypeAlias = tuple[str, str]  # (file, function)
_Applied: TypeAlias = tuple[Compilation, int]  # (an operation, the line of a function that applied it)


def find(run: Run, left: Sequence[Payer]) -> Iterator[tuple[Finding, Set[str]]]:
    """Yield findings about functions of the user in which several lines together make JAX compile many
    operations outside jit, which takes much of the time of all compilations, each with the ids of these
    compilations. ``left`` are the lines that have no finding yet. Left out are functions that call jitted
    functions, and those that mostly call other functions with operations, unless jit can trace them
    whole."""
    total, calls = payers.total_seconds(run), dict[_Part, dict[str, _Applied]]()
    calling = {(c.site.file, c.site.function) for c in payers.user_calls(run) if c.site is not None}
    direct = [p for p in left if (p.library or "jax") in JAX_ROOTS and not outside_jit.creates(run, p)]
    for c in (c for p in direct for c in p.compilations):
        for at in c.lines:
            if at.function != "<module>" and (at.file, at.function) not in calling:
                calls.setdefault((at.file, at.function), {}).setdefault(c.id, (c, at.line))
    found = dict[_Part, dict[str, _Applied]]()
    for part, members in sorted(calls.items(), key=lambda item: len(item[1])):
        covered = {n for inner in found.values() for n in inner}
        own = [a for n, a in members.items() if n not in covered]
        lines = {line for _, line in own}
        its_own = sum((c.lines[0].file, c.lines[0].function) == part for c, _ in own)
        whole = _only_computes(run, part, [c for c, _ in own])
        if DIRECT * its_own < len(own) and not whole:
            continue  # it only calls others, which may do what jit cannot
        fewest, share = (2, WHOLE) if whole else (FEW_LINES, TOGETHER)
        if len(own) >= FEWEST and len(lines) >= fewest and _avoidable(own) >= share * total:
            found = {inner: m for inner, m in found.items() if not m.keys() <= members.keys()}
            found[part] = members
    resized = {c.id for p in direct if payers.sizes_change(run, p) for c in p.again}
    for (file, function), members in found.items():
        grows = 3 * len(resized & members.keys()) >= len(members)
        again = sum(c.id in members for p in direct for c in p.again)
        yield _of_function(run, file, function, [*members.values()], again, grows=grows), members.keys()


def _avoidable(applied: Sequence[_Applied]) -> float:
    """Return the seconds of the compilations ``applied`` that jit of their function saves. A jitted function
    has to compile the loops (``lax.scan``), too, each once."""
    first = {(c.function.id, line): c.id for c, line in reversed(applied)}
    kept = set(first.values())
    return sum(c.seconds for c, _ in applied if c.function.seen.name not in LOOPS or c.id not in kept)


def _only_computes(run: Run, part: _Part, compiled: Sequence[Compilation]) -> bool:
    """Return whether jit can probably trace the function ``part``, (file, name), as a whole: it and all
    functions of the user that it called for the compilations ``compiled`` only compute."""
    inside = {part}
    for c in compiled:
        names = [(at.file, at.function) for at in c.lines]
        inside.update(names[: names.index(part)])
    named = [(file, name) for file, name in inside if not name.endswith(">")]  # no comprehension, no lambda
    return all(line_names.computes_only(sources.of(run)(file), name) for file, name in named)


def _outermost(run: Run, part: _Part, compiled: Sequence[Compilation]) -> str:
    """Follow the callers of ``part`` (file, function) outwards, and return the last function that jit can
    probably trace as a whole; the function of ``part`` if no caller is such a function.

    The search ends at the first caller that is not the same for all of ``compiled``, is in another file,
    calls the next function in a loop, takes objects, or is a lambda or a comprehension."""
    file, outer = part
    text = sources.of(run)(file)
    chains = []
    for c in compiled:
        names = [(at.file, at.function) for at in c.lines]
        chains.append(c.lines[names.index(part) + 1 :])
    for callers in zip(*chains, strict=False):
        at = callers[0]
        if any((other.file, other.function) != (file, at.function) for other in callers):
            break
        if at.function.endswith(">") or any(loop_around(text, other.line) is not None for other in callers):
            break
        if not line_names.computes_only(text, at.function) or line_names.takes_objects(text, at.function):
            break
        outer = at.function
    return outer


def _of_function(
    run: Run, file: str, function: str, applied: Sequence[_Applied], again: int, *, grows: bool
) -> Finding:
    """Return the finding about ``applied``: pairs of a compilation outside jit and the line of ``function``
    (in ``file``) that caused it. ``again`` of them are recompiles. ``grows`` is whether many of them are
    recompiles because sizes change."""
    spent = Counter[int]()
    for c, line in applied:
        spent[line] += round(1e9 * c.seconds)
    lines = [line for line, _ in spent.most_common()]
    names = tuple(sorted({c.function.seen.name for c, _ in applied}))
    where = message(
        "lines-of-one-function",
        numbers=_costliest(lines),
        function=function.replace(".<locals>", ""),
    )
    whole = not grows and _only_computes(run, (file, function), [c for c, _ in applied])
    outer = _outermost(run, (file, function), [c for c, _ in applied]) if whole else function
    calls = function if outer != function else None
    fix = loop_functions.as_a_whole(run, file, outer, calls) if whole else None
    if fix is None:
        fix = Fix(message("fix-jit-parts", pad=message("and-pad-inside") if grows else None), "jit")
    elif 2 * again < len(applied):  # else the sizes differ from iteration to iteration, which scan cannot do
        fix = inner_loops.with_inner_loops(run, fix, _loops(run, (file, outer), [c for c, _ in applied]))
    part = {(file, function)}
    parts = Fix(message("fix-jit-parts", pad=None), "jit")
    moved = {(file, line) for line in lines}
    as_parts = jit_obstacles.with_obstacles(run, parts, part, part, moved=moved)
    of_lines = moved if "fix-jit-parts" in slugs_of(fix) else None
    fix = jit_obstacles.with_obstacles(run, fix, part, part, moved=of_lines)
    if "fix-returns-value" in slugs_of(fix):
        fix = as_parts  # it computes on with a value that it reads, so not as a whole
    return Finding(
        code=payers.CODE,
        severity=WARNING if again >= outside_jit.BARRAGE else NOTE,
        certainty=CERTAIN,
        title=message(
            "compiled-outside-jit",
            compilations=Count(len(applied), "compilation"),
            lines=where,
            names=Names(names, 4, "operations"),
            again=message("compiled-again", n=Count(again, *outside_jit.RECOMPILES)) if again else None,
        ),
        source=Frame(file, lines[0], function),
        evidence=[_of_line(Frame(file, line, function), applied) for line in lines[:LISTED]],
        fix=fix,
        seconds=_avoidable(applied),
        subject=(file, function),
        at_most=True,
        timed=True,
    )


def _costliest(lines: Sequence[int]) -> Names:
    """Return line numbers for a message: all, or of many the costliest. ``lines``: the costliest first."""
    if len(lines) <= MANY_LINES:
        return line_numbers(lines)
    first = sorted(lines[:NAMED])
    return Names(tuple(str(n) for n in (*first, *lines[NAMED:])), NAMED)


def _loops(run: Run, part: _Part, compiled: Sequence[Compilation]) -> list[Frame]:
    """Return the first lines of the Python loops around the operations ``compiled``, in the function ``part``
    (file, function) and in functions that it called for them."""
    found: dict[tuple[str, int], Frame] = {}
    for c in compiled:
        names = [(at.file, at.function) for at in c.lines]
        for at in c.lines[: names.index(part) + 1]:
            for first, _ in loops_around(sources.of(run)(at.file), at.line):
                found.setdefault((at.file, first), Frame(at.file, first, at.function))
    return list(found.values())


def _of_line(line: Frame, applied: Sequence[_Applied]) -> Evidence:
    here = [c for c, at in applied if at == line.line]
    seconds = Seconds(sum(c.seconds for c in here))
    words = message(
        "compiled-of-line", line=line, compilations=Count(len(here), "compilation"), seconds=seconds
    )
    return Evidence(words, compilation=here[0].id, source=line)
