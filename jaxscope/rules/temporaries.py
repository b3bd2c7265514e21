"""Rule JX516: a line stores a large array outside jit, only to reduce it to a smaller one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from jaxscope.analysis.avals import aval_bytes, short_aval
from jaxscope.analysis.source_lines import in_a_loop, reached_now_and_then
from jaxscope.model import arrays, line_times, sources
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import CALLING, OPERATIONS, WAITING
from jaxscope.schema.messages import Bytes, message

TIMES = 16  # the array must be at least this many times as large as each array of which it is made
# Operations whose result XLA stores in a jitted function, too
_STORED = re.compile(r"_?(matmul|dot|dot_general|einsum|conv_general_dilated|sort|argsort|fft|cumsum)")
RUN = ("call", "transform")  # how operations are applied outside jit: directly, or by jax.vmap
# JAX's functions that reduce an array, as they are called when they run outside jit
_REDUCES = re.compile(
    r"_?(sum|mean|var|std|prod|any|all|norm|logsumexp|arg(min|max)|(nan)?(min|max)|reduce_\w+|count_nonzero)"
)


_Type = tuple[tuple[int | str, ...] | None, str | None]  # the shape and the dtype of an array


@rule("JX516", "stored-outside-jit", WARNING)
def stored_outside_jit(run: Run) -> Iterator[Finding]:
    memory = memory_scale.of_process(run.main)
    seen = _without_variable(run)
    for at, operations in _operations(run).items():
        found = _largest(operations, seen.get(at.place, set()))
        if found is None or found[0] < memory_scale.WORTH_A_NOTE * memory:
            continue
        size, (shape, dtype), reduction = found
        text_of = sources.of(run)
        lines = [(text_of(frame.file), frame.line) for frame in reduction.lines]
        seldom = any(reached_now_and_then(*line) for line in lines)
        looped = not seldom and any(in_a_loop(*line) for line in lines)
        seconds = line_times.seconds_in_loop(run, reduction.lines)
        if seldom or seconds is None:  # there is no loop, or it does other work in most of its iterations
            seconds = line_times.seconds_at(run, {at.place}, (OPERATIONS, CALLING, WAITING))
        text = message(
            "stored-outside-jit",
            line=at,
            array=short_aval(shape, dtype),
            bytes=Bytes(size),
            operation=reduction.function.display_name.lstrip("_"),
        )
        yield Finding(
            code="JX516",
            severity=WARNING if size >= memory_scale.WORTH_A_WARNING * memory and looped else NOTE,
            certainty=LIKELY,
            **at_line(text, at, reduction),
            fix=Fix(message("fix-reduce-in-jit"), "jit"),
            subject=(at,),
            seconds=seconds,
            at_most=True,
        )


def _operations(run: Run) -> dict[Frame, list[Compilation]]:
    """Return the compilations of operations outside jit by line, in the order of time."""
    found: dict[Frame, list[Compilation]] = {}
    for c in sorted(run.compilations.values(), key=lambda c: c.t_ns):
        if c.site is not None and c.key is not None and not c.function.user and c.entry in RUN:
            found.setdefault(c.site, []).append(c)
    return found


def _without_variable(run: Run) -> dict[tuple[str, int], set[_Type]]:
    """Return the types of live arrays to which no variable refers, by the line that created them: (file,
    number) -> types."""
    found: dict[tuple[str, int], set[_Type]] = {}
    for snapshot in arrays.of_main(run):
        for g in snapshot.groups:
            if g.path is None and g.origin is not None:
                found.setdefault(g.origin.place, set()).add((g.shape, g.dtype))
    return found


def _largest(operations: Sequence[Compilation], unnamed: set[_Type]) -> tuple[int, _Type, Compilation] | None:
    """Return (bytes, type, operation that reduces it) of the largest array that one line makes of much
    smaller arrays, only to reduce it. ``operations`` are those of the line in the order of time; ``unnamed``
    are the types of arrays from this line to which no variable referred. Return None if there is none, or if
    an operation of the line would store its result under jit, too."""
    found = None
    if any(_STORED.fullmatch(c.function.display_name) for c in operations):
        return None
    for n, c in enumerate(operations):
        reduced = c.key.arguments if c.key is not None else []
        for leaf in reduced if _REDUCES.fullmatch(c.function.display_name) else ():
            size, kind = aval_bytes(leaf.shape, leaf.dtype) or 0, (leaf.shape, leaf.dtype)
            made = any(_makes(o, leaf.shape, size, kind in unnamed) for o in operations[:n])
            later = [a for o in operations[n + 1 :] for a in (o.key.arguments if o.key is not None else ())]
            made = made and all((a.shape, a.dtype) != kind for a in later)  # else it is not only reduced
            if made and (found is None or size > found[0]):
                found = size, kind, c
    return found


def _makes(c: Compilation, shape: tuple[int | str, ...] | None, size: int, known_line: bool) -> bool:
    """Return whether the operation ``c`` makes an array of ``shape`` with ``size`` bytes from arrays that are
    all at least TIMES times smaller. ``known_line``: whether its line is known to make such an array."""
    taken = c.key.arguments if c.key is not None else []
    if any(TIMES * (aval_bytes(a.shape, a.dtype) or 0) > size for a in taken):
        return False
    return known_line or (bool(taken) and _broadcast([a.shape for a in taken]) == shape)


def _broadcast(shapes: Sequence[tuple[int | str, ...] | None]) -> tuple[int | str, ...]:
    """Return the shape to which arrays are broadcast: ``(3, 4)`` for ``(3, 1)`` and ``(4,)``."""
    backward = itertools.zip_longest(*(reversed(shape or ()) for shape in shapes), fillvalue=1)
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in backward)[::-1]
