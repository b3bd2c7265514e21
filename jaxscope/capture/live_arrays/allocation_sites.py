"""Find the user's line that created an array, from the stack that jaxlib stores with each array.

Nothing is recorded when an array is created, and no stack is kept alive.
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
    """Return the innermost line of the user's code in ``stack``, the Python stack that jaxlib stores with
    each array (``array.traceback``). If the user has no line in it, return the innermost line of an installed
    package other than JAX and libraries around JAX. Return None if there is no such line either, or if
    ``stack`` is None."""
    best, site = Standing.LIBRARY, None
    for f in stack.frames if stack is not None else ():
        standing = frames.file_standing(f.file_name)
        if standing < best and f.line_num:
            best, site = standing, Frame(file=f.file_name, line=f.line_num, function=f.function_name)
            if best == Standing.USER:
                break
    return site


def lines_of(refs: list[tuple[int, weakref.ref[Any]]], count: int) -> tuple[list[Frame], list[int]]:
    """Return (the lines that created the arrays among a call's arguments, each line once; for each pytree
    leaf of the arguments the index of its line in this list). The index is -1 for a leaf that is no array,
    was deleted, or has an unknown line. Only the first MAX_ARRAYS arrays are examined.

    Args:
      refs: (position of the leaf, weak reference to the array) of each array.
      count: the number of leaves.
    """
    lines: dict[Frame | None, int] = {None: -1}
    line_of_stack: dict[Any, int] = {}
    indices = [-1] * count
    for position, ref in refs[:MAX_ARRAYS]:
        stack = jax_internals.made_at(ref())
        if stack not in line_of_stack:
            line_of_stack[stack] = lines.setdefault(line(stack), len(lines) - 1)
        indices[position] = line_of_stack[stack]
    return [frame for frame in lines if frame is not None], indices
