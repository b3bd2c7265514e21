"""Rule JX308: constant indices that are out of bounds."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from itertools import zip_longest

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.stablehlo.out_of_bounds import OutOfBounds
from jaxscope.analysis.syntax import syntax
from jaxscope.model import sources
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about, at_line
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, message

# by ``OutOfBounds.use``: how to say that an index out of bounds is intended
_MODES = {"change": message("mode-drop"), "fill": message("mode-fill"), "read": message("mode-clip")}


@rule("JX308", "index-out-of-bounds", WARNING)
def index_out_of_bounds(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line with a constant index that is out of bounds, unless the line states a
    mode for such indices."""
    seen = set[Frame]()
    for p, f, texts in users(run):
        for one in texts.stablehlo.out_of_bounds if texts.stablehlo is not None else ():
            if one.source not in seen and "mode=" not in sources.line(run, one.source):
                seen.add(one.source)
                text = message("index-out-of-bounds", function=f.display_name, **_fields(one))
                yield Finding(
                    code="JX308",
                    severity=WARNING,
                    certainty=CERTAIN,
                    **about(p, f, text, one.source),
                    fix=_fix(one),
                    subject=(one.source,),
                )
    for f in run.functions.values():
        for c in f.compilations if f.seen.eager and f.seen.name == "dynamic_slice" else ():
            found = _outside_jit(run, c)
            if found is not None and found.source not in seen:
                seen.add(found.source)
                text = message("index-out-of-bounds-here", **_fields(found))
                yield Finding(
                    code="JX308",
                    severity=WARNING,
                    certainty=CERTAIN,
                    **at_line(text, found.source, c),
                    fix=_fix(found),
                    subject=(found.source,),
                )


def _fields(one: OutOfBounds) -> dict[str, int | Message]:
    if one.use == "change":
        instead = message("leaves-update-out")
    elif one.use == "fill":
        instead = message("reads-nan")
    else:
        instead = message("reads-another-element", element=0 if one.index < 0 else one.size - 1)
    return {"index": one.index, "size": one.size, "instead": instead}


def _fix(one: OutOfBounds) -> Fix:
    return Fix(
        message("fix-index-in-bounds", last=one.size - 1, size=one.size, mode=_MODES[one.use]), "index"
    )


def _outside_jit(run: Run, c: Compilation) -> OutOfBounds | None:
    """Return the index out of bounds with which the line of ``c`` reads an array outside jit. ``c`` is the
    compilation of JAX's operation for this."""
    missed, out = c.missed, c.traced.out if c.traced is not None else None
    if missed is None or missed.site is None or c.key is None or not c.key.arguments or not out:
        return None
    shape, read = c.key.arguments[0].shape or (), list(out[0].shape or ())
    possible = _subscripts(sources.of(run)(missed.site.file)).get((missed.site.line, missed.column), [])
    found = {tuple(_indices(node, len(shape))) for node in possible}  # of x[0][1], two
    fitting = [at for at in found if [n if k is None else 1 for k, n in zip_longest(at, shape)] == read]
    for at, n in zip(fitting[0], shape, strict=False) if len(fitting) == 1 else ():
        if at is not None and isinstance(n, int) and not -n <= at < n:
            return OutOfBounds(at, n, "read", missed.site)
    return None


@functools.lru_cache(8)
def _subscripts(source: str | None) -> dict[tuple[int, int | None], list[ast.expr]]:
    """Return (line, column) -> the indices of the expressions that begin there."""
    items = (n for n in ast.walk(syntax(source).tree) if isinstance(n, ast.Subscript))
    return grouped(((n.lineno, n.col_offset), n.slice) for n in items)


def _indices(node: ast.expr, rank: int) -> list[int | None]:
    """Return the constant index for each axis of an array with ``rank`` axes, with None for a colon: for
    ``x[:, -1]``, ``node`` is ``:, -1`` and the result ``[None, -1]``. Return an empty list if ``node`` has
    other indices."""
    indices = [each for each in (node.elts if isinstance(node, ast.Tuple) else [node]) if not _is(each, None)]
    found: list[int | None] = []
    for each in indices:
        if isinstance(each, ast.Slice) and each.lower is each.upper is each.step is None:
            found.append(None)
        elif _is(each, ...):
            found += [None] * (rank - len(indices) + 1)
        elif (number := _number(each)) is not None:
            found.append(number)
        else:
            return []
    return found


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _number(node: ast.expr) -> int | None:
    """Return the integer that ``node`` is (``2``, ``-1``), or None."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None
