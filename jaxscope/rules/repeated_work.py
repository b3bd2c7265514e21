"""Rule JX208: jitted functions that compute the same in each iteration of a loop, from arguments that the
loop does not change."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxscope.analysis import loop_calls
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.argument_work import ArgumentWork
from jaxscope.analysis.stablehlo.cheaper_forms import ORDER
from jaxscope.analysis.syntax import last_name, syntax
from jaxscope.model import line_times, sources
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import LONG, users
from jaxscope.rules.finding_parts import MOST, about, running_share
from jaxscope.rules.line_lists import known_lines
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import COMPILING
from jaxscope.schema.messages import Message, Names, Percent, message

FEWEST, MUCH = 0.5, 0.8  # share of the operations of the function: a note, a warning
IMMUTABLE = frozenset({"haiku", "equinox"})  # libraries whose functions never change their arguments
PRODUCTS = 100_000_000  # flops of matrix products in one call of a function that computes much
# Functions that a benchmark calls
MEASURES = frozenset({"perf_counter", "monotonic", "time", "process_time", "block_until_ready"})
LEAST = 1_000_000  # operations in one call that are repeated; fewer take no longer than the call itself


@rule("JX208", "work-repeated-in-loop", WARNING)
def work_repeated_in_loop(run: Run) -> Iterator[Finding]:
    """Yield at most one finding for each function that a loop calls: about work that is the same in each
    iteration."""
    flops = {p.id: (texts.hlo.matrix_flops_at_least or 0) if texts.hlo else 0 for p, _, texts in users(run)}
    for p, f, texts in users(run):
        large = flops[p.id] >= PRODUCTS and 2 * flops[p.id] >= max(flops.values())
        if (again := _rows_again(run, p, f, large=large)) is not None:
            yield again
            continue
        work = texts.stablehlo.argument_work if texts.stablehlo is not None else ()
        total = sum(w.operations for w in work)
        if (constant := _of_constants(run, p, f, work, total)) is not None:
            yield constant
            continue
        found = _repeated(run, p, f, work) if total >= LEAST else None
        if found is None:
            continue
        loop, parts, whole = found
        if whole and texts.stablehlo is not None and texts.stablehlo.captures_key:
            continue  # JX134: each call draws the same random numbers
        repeated = sum(w.operations for w in parts)
        share = repeated / total
        if repeated < LEAST or share < FEWEST or _in_costly_order(texts, repeated):
            continue
        names = tuple(dict.fromkeys(name for w in parts for name in w.arguments))
        lines = tuple(dict.fromkeys(str(at.line) for w in parts for at in w.lines))
        lines = *sorted(lines[:MOST], key=int), *lines[MOST:]
        text = message(
            "work-repeated-in-loop",
            function=f.display_name,
            loop=loop,
            share=Percent(share),
            lines=known_lines(lines, MOST),
            arguments=Names(names, MOST),
        )
        site = p.compilations[-1].site
        yield Finding(
            code="JX208",
            severity=WARNING if share >= MUCH else NOTE,
            certainty=LIKELY,
            **about(p, f, text, site),
            fix=Fix(_hoisted(run, f, work, parts, whole=whole), "hoist", {"arguments": list(names)}),
            seconds=running_share(run, f, share),
            at_most=True,
            subject=(),
        )


def _hoisted(
    run: Run, f: Function, work: Sequence[ArgumentWork], parts: Sequence[ArgumentWork], *, whole: bool
) -> Message:
    """Return the advice to compute ``parts``, operations of ``f`` that are the same in each iteration of the
    loop that calls it, before the loop.

    Args:
      work: all operations of ``f``.
      whole: whether the loop changes none of the arguments of the call.
    """
    names = Names(tuple(dict.fromkeys(name for w in parts for name in w.arguments)), MOST)
    if whole:
        return message("fix-call-before-loop", function=f.display_name, arguments=names)
    own = {at.function for w in parts for at in w.lines}
    inner = own.pop() if len(own) == 1 else ""
    others = {at.function for w in work if w.arguments and w not in parts for at in w.lines}
    if not inner.isidentifier() or inner in (f.seen.qualname, *others):
        return message("fix-compute-before-loop", arguments=names, function=f.display_name)
    jitted = any(g.seen.qualname == inner and g.seen.file == f.seen.file for g in run.functions.values())
    return message(
        "fix-function-before-loop",
        inner=inner,
        function=f.display_name,
        jit=None if jitted else message("inner-with-jit", inner=inner),
    )


def _of_constants(
    run: Run, p: Program, f: Function, work: tuple[ArgumentWork, ...], total: int
) -> Finding | None:
    """Return a finding if a loop calls ``f``, and each call decomposes a matrix that depends on no argument.
    XLA computes other operations of constants when it compiles. ``total`` is the number of operations in
    ``work``. Return None otherwise, or if unknown."""
    c = p.compilations[-1]
    constant = next((w for w in work if not w.arguments), None)
    if constant is None or c.site is None or c.missed is None or f.seen.wrappers:
        return None
    share = constant.decompositions / total if total else 0.0
    source = sources.of(run)(c.site.file)
    found = loop_calls.find(source, c.site.line, c.missed.column, f.seen.name)
    if constant.decompositions < LEAST or share < FEWEST or found is None:
        return None
    line = constant.lines[0] if constant.lines else c.site
    loop = Frame(c.site.file, found.loop.lineno, "")
    text = message("constant-decomposed", function=f.display_name, loop=loop, share=Percent(share))
    drawn = "multivariate_normal" in sources.line(run, line)
    advice = message("fix-factor-once" if drawn else "fix-decompose-once", function=f.display_name)
    return Finding(
        code="JX208",
        severity=WARNING if share >= MUCH else NOTE,
        certainty=LIKELY,
        **about(p, f, text, line),
        fix=Fix(advice, "hoist"),
        seconds=running_share(run, f, share),
        at_most=True,
        subject=(),
    )


def _rows_again(run: Run, p: Program, f: Function, *, large: bool) -> Finding | None:
    """Return a finding if an inner loop calls ``f`` for rows of arrays, and an outer loop (such as one over
    epochs) repeats these calls for the same rows. Return None otherwise, or if unknown.

    Args:
      large: whether ``p`` computes much. If not, the line of the call must take at least the share LONG of
        the measured time.
    """
    c, measured = p.compilations[-1], line_times.measured(run)
    libraries = {wrapper.partition(".")[0] for wrapper in f.seen.wrappers}
    if c.site is None or c.missed is None or measured is None or not IMMUTABLE.issuperset(libraries):
        return None
    source = sources.of(run)(c.site.file)
    compiled = loop_calls.call_at(source, c.site.line, c.missed.column, f.seen.name)
    name = last_name(compiled.func) if compiled is not None else None
    for call in syntax(source).all_calls() if name is not None else ():
        looped = loop_calls.find(source, call.lineno, call.col_offset, name or "")
        if looped is None or looped.outer is None or last_name(call.func) != name:
            continue
        rows, here = looped.takes_rows_again(), (c.site.file, call.lineno)
        spent = [s.seconds for s in line_times.by_line(run) if s.line.place == here and s.doing != COMPILING]
        long = sum(spent) >= LONG * measured.seconds
        if rows and (large or long):
            site = Frame(c.site.file, call.lineno, "")
            outer, arrays = (
                Frame(c.site.file, looped.outer.lineno, ""),
                Names(tuple(dict.fromkeys(rows)), MOST),
            )
            text = message("same-rows-again", function=name, loop=outer, arrays=arrays)
            return Finding(
                code="JX208",
                severity=WARNING,
                certainty=LIKELY,
                **about(p, f, text, site),
                fix=Fix(message("fix-keep-results", function=name, arrays=arrays), "hoist"),
                seconds=sum(spent) if long else None,
                at_most=True,
                subject=(),
            )
    return None


def _in_costly_order(texts: Texts, repeated: int) -> bool:
    """Return whether most of the ``repeated`` operations (their number) are matrix products that another
    order of multiplication would save."""
    forms = texts.stablehlo.cheaper_forms if texts.stablehlo is not None else ()
    return any(form.kind == ORDER and 2 * form.operations > repeated for form in forms)


def _repeated(
    run: Run, p: Program, f: Function, work: tuple[ArgumentWork, ...]
) -> tuple[Frame, list[ArgumentWork], bool] | None:
    """Return (loop, parts, whole): the loop that calls ``f``; the parts of ``work`` that depend only on
    arguments that the loop does not change; and whether the loop changes no argument of the call. Return None
    if no loop is known, if ``f`` is under a wrapper, or if there are no such parts. Return None also if
    another part has an unknown number of operations, or if there is no other part and the loop seems to
    measure or draw something, or does not use the results."""
    c = p.compilations[-1]
    if c.site is None or c.missed is None or f.seen.wrappers:
        return None
    source = sources.of(run)(c.site.file)
    found = loop_calls.find(source, c.site.line, c.missed.column, f.seen.name)
    if found is None:
        return None
    changing = loop_calls.names_set(found.repeats)
    same = {
        name
        for name in {name for w in work for name in w.arguments}
        if _is_same(loop_calls.argument(found.call, f.seen.signature, name), changing)
    }
    passed = (*found.call.args, *(keyword.value for keyword in found.call.keywords))
    parts = [w for w in work if w.arguments and same.issuperset(w.arguments)]
    others = [w for w in work if not same.issuperset(w.arguments)]
    # In a loop of the program, the number of operations is unknown.
    if not parts or any(w.in_loop for w in others):
        return None
    if not others and (_has_key(c) or not loop_calls.uses_result(found, MEASURES)):
        return None
    whole = not others and all(isinstance(a, ast.Constant) or _is_same(a, changing) for a in passed)
    return Frame(c.site.file, found.loop.lineno, ""), parts, whole


def _has_key(c: Compilation) -> bool:
    """Return whether the call ``c`` gets a random key: JX137 reports that a key is used again."""
    leaves = c.key.arguments if c.key is not None else ()
    return any((leaf.dtype or "").startswith("key") or leaf.path in ("key", "rng") for leaf in leaves)


def _is_same(passed: ast.expr | None, changing: set[str]) -> bool:
    """Return whether ``passed``, an argument of a call in a loop, has the same value in each iteration: it is
    a variable that is not in ``changing``, the names that the loop sets, also by items and attributes."""
    return isinstance(passed, ast.Name) and passed.id not in changing
