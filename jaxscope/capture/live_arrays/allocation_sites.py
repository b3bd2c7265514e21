"""The user's line that made an array, from the stack jaxlib keeps with it.

Reads what is there already: nothing is recorded when an array is made, and no stack is kept.
"""

from __future__ import annotations

import weakref
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import frames
from jaxscope.schema.file_owner import Standing
from jaxscope.schema.keys import Frame

MAX_ARRAYS = 4000


def line(stack: Any) -> Frame | None:
    """The innermost line of the user's in ``stack``, as ``array.traceback`` gives it; else an installed package's."""
    best, found = Standing.LIBRARY, None
    for f in stack.frames if stack is not None else ():
        whose = frames.file_standing(f.file_name)
        if whose < best and f.line_num:
            best, found = whose, Frame(file=f.file_name, line=f.line_num, function=f.function_name)
            if best == Standing.USER:
                break
    return found


def of(refs: list[tuple[int, weakref.ref[Any]]], count: int) -> tuple[list[Frame], list[int]]:
    """The lines that made the arrays among ``count`` leaves; ``refs`` are (position, array).

    Returns (lines, for each leaf the index of its line). -1: not known, or no jax.Array. Arrays that one
    call made share a stack; a look at an equal stack is a dictionary look-up.
    """
    lines: dict[Frame | None, int] = {None: -1}
    seen: dict[Any, int] = {}
    made = [-1] * count
    for position, ref in refs[:MAX_ARRAYS]:
        stack = jax_internals.made_at(ref())
        if stack not in seen:
            seen[stack] = lines.setdefault(line(stack), len(lines) - 1)
        made[position] = seen[stack]
    return [frame for frame in lines if frame is not None], made
