"""Find sorts of which the program only uses the first or the last elements, which ``jax.lax.top_k`` finds
without sorting the rest, and sorts from which it only reads the position of some elements."""

from __future__ import annotations

import math
import re

import msgspec

from jaxscope.analysis.stablehlo import flow, types
from jaxscope.analysis.stablehlo.module import EQUAL, NOT_OPERATIONS, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

SORT = "stablehlo.sort"
COMPARE = "stablehlo.compare"
SLICE = "stablehlo.slice"
# These keep or reverse the order of the elements
SAME_ORDER = frozenset({"stablehlo.convert", "stablehlo.negate", "stablehlo.reverse"})
SHUFFLE = "_shuffle"  # JAX's function behind jax.random.permutation and jax.random.choice without replacement
FEW = 8  # a sort is worth replacing if at least FEW times as many elements are sorted as are used
_DIMENSION = re.compile(r"dimension = (\d+)")
_BOUNDS = re.compile(r"(\d+):(\d+)(?::(\d+))?")


class PartialSort(msgspec.Struct, frozen=True):
    """A sort of which the program uses few elements, or only their positions.

    Attributes:
      rows: number of rows that are sorted, each by itself.
      length: number of elements in each row.
      used: the largest number of elements of a row that the program uses: the first or the last ones. 0 if
        the program only compares the sorted elements with others for equality, to find their positions.
      shuffles: whether the sort shuffles the row (``jax.random.permutation``, ``jax.random.choice``).
      source: the line of the user's code; None: unknown.
    """

    rows: int
    length: int
    used: int
    shuffles: bool
    source: Frame | None


def find(module: Module, sources: Sources) -> list[PartialSort]:
    """Return the sorts whose rows have at least FEW (8) times as many elements as the program uses of them,
    and the sorts from which it only reads positions, in the order of the text."""
    users = flow.users(module)
    found = []
    for index, op in enumerate(module.ops):
        shape = types.tensor(op.outputs[0]).shape if op.name == SORT and op.outputs else None
        dimension = _DIMENSION.search(op.detail) if shape else None
        sizes = [n for n in shape or () if n is not None]
        if dimension is None or len(sizes) != len(shape or ()) or not sources.times[op.function]:
            continue
        axis = int(dimension[1])
        length = sizes[axis] if axis < len(sizes) else 0
        used = _used(module, sources, users, index, axis, length)
        if used is not None and 0 < length >= FEW * used:
            shuffles = module.functions[op.function].name.startswith(SHUFFLE)
            rows = math.prod(sizes) // length
            found.append(PartialSort(rows, length, used, shuffles, sources.frame(index)))
    return found


def _used(
    module: Module, sources: Sources, users: dict[int, list[int]], index: int, axis: int, length: int
) -> int | None:
    """Return how many elements along ``axis`` the program uses of the sort ``index``, if these are the first
    or the last of ``length`` elements. Return 0 if the program only compares elements for equality. Return
    None if it does both, if it uses the sort otherwise, or if no use is found. ``users``: index of an
    operation -> indices of the operations that read its results."""
    most, compared, left, seen = 0, False, [index], set[int]()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        for user in users.get(value, ()):
            op = module.ops[user]
            if op.name in SAME_ORDER:
                left.append(user)
            elif op.name in NOT_OPERATIONS and op.parent is None and sources.called[op.function]:
                left += sources.called[op.function]
            elif op.name == SLICE and (taken := _at_an_end(op.detail, axis, length)) is not None:
                most = max(most, taken)
            elif op.name == COMPARE and EQUAL.search(op.detail):
                compared = True
            else:
                return None
    return None if compared and most else most if most or compared else None


def _at_an_end(detail: str, axis: int, length: int) -> int | None:
    """Return how many elements along ``axis`` the slice with the text ``detail`` (``%1 [0:500, 0:20]``)
    takes. Return None if it includes neither the first nor the last of the ``length`` elements, or leaves out
    elements in between."""
    bounds = _BOUNDS.findall(detail)
    if axis >= len(bounds) or bounds[axis][2] not in ("", "1"):
        return None
    first, end = int(bounds[axis][0]), int(bounds[axis][1])
    return end - first if first == 0 or end == length else None
