"""Extend the advice to jit a loop or a function by what to do with the Python loops inside."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from jaxscope.analysis import loop_calls
from jaxscope.analysis.array_names import holds_array
from jaxscope.analysis.syntax import assigned, last_name, spans, syntax
from jaxscope.model import payers, sources
from jaxscope.model.run import Run
from jaxscope.schema.findings import Fix, extended, slugs_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, Names, message

FEW_ITERATIONS = 4  # of a Python loop that may stay one inside jit
MORE_LOOPS = 3  # Python loops that are named in advice beside the most important one


def with_inner_loops(run: Run, fix: Fix, inner: Sequence[Frame]) -> Fix:
    """Return the advice ``fix`` to jit the body of a loop, extended by advice about ``inner``, Python loops
    inside that body, which tracing would unroll. Return ``fix`` alone if there are none, or only loops of a
    few iterations or over layers of several widths, which have to stay Python loops."""
    inner = [line for line in inner if not _has_few_iterations(run, line) and not _over_layers(run, line)]
    if not inner or "fix-trace-draws" in slugs_of(fix):  # loops of a model make sample sites
        return fix
    first, *rest = inner
    in_order = _runs_in_order(run, first)
    same = [line for line in rest if _runs_in_order(run, line) == in_order]
    others = [line for line in rest if line not in same]
    words = message(
        "fix-inner-loop",
        fix=fix.words,
        loop=first,
        instead=message("fix-loop-by-scan") if in_order else _by_vmap(run, first),
        same=message("same-for-loops", loops=Names(tuple(same), MORE_LOOPS)) if same else None,
        others=message(
            "other-loops",
            loops=Names(tuple(others), MORE_LOOPS),
            instead=message("by-vmap" if in_order else "by-scan"),
        )
        if others
        else None,
    )
    arguments = {**fix.arguments, "inner": [first.file, first.line, first.function]}
    return Fix(words, fix.kind, arguments)


def with_vmap(run: Run, fix: Fix, loop: Frame) -> Fix:
    """Return the advice ``fix`` to jit the body of ``loop``, extended by ``jax.vmap`` if each iteration only
    replaces its own items of lists, as in a loop over the members of an ensemble."""
    names = loop_calls.items_of_iterations(loop_calls.loop_from(sources.of(run)(loop.file), loop.line))
    if not names:
        return fix
    return extended(fix, "fix-or-vmap-over-items", loop=loop, names=Names(names), first=names[0])


def _has_few_iterations(run: Run, line: Frame) -> bool:
    """Return whether the loop that begins on ``line`` goes through ``range(n)``, where ``n`` is a number of
    at most FEW_ITERATIONS, or through a list with at most so many items that the module defines."""
    text = sources.of(run)(line.file)
    loop = loop_calls.loop_from(text, line.line)
    items = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(items, ast.Call) and last_name(items.func) == "enumerate" and items.args:
        items = items.args[0]
    match items:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(n))]):
            return n <= FEW_ITERATIONS
        case ast.Name(id=name):
            values = assigned(syntax(text).tree, name)
            items = values[0] if len(values) == 1 else None
    return isinstance(items, (ast.List, ast.Tuple)) and len(items.elts) <= FEW_ITERATIONS


def _over_layers(run: Run, line: Frame) -> bool:
    """Return whether the loop that begins on ``line`` leads to operations for layers of several widths."""
    loop = loop_calls.loop_from(sources.of(run)(line.file), line.line)
    return loop is not None and any(
        any(at.file == line.file and spans(loop, at.line) for at in p.compilations[0].lines)
        and payers.of_layers(run, p)
        for p in payers.payers(run)
        if p.again
    )


def _by_vmap(run: Run, line: Frame) -> Message:
    """Return the advice to replace the loop that begins on ``line`` by ``jax.vmap``."""
    text = sources.of(run)(line.file)
    loop = loop_calls.loop_from(text, line.line)
    over = loop.iter if isinstance(loop, ast.For) else None
    counts = isinstance(over, ast.Call) and last_name(over.func) == "range"
    known = counts or (isinstance(over, ast.Name) and holds_array(text, line.line, over.id))
    return message("fix-loop-by-vmap", listed=None if known else message("loop-over-a-list"))


def _runs_in_order(run: Run, line: Frame) -> bool:
    """Return whether the iterations of the loop that begins on ``line`` need results of each other."""
    loop = loop_calls.loop_from(sources.of(run)(line.file), line.line)
    return isinstance(loop, ast.While) or (isinstance(loop, ast.For) and loop_calls.carries(loop))
