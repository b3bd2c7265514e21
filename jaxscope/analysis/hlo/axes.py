"""Find the mesh axes along which the groups of a collective run.

A collective may run along a whole axis, written ``data``, or along a part of one, written ``data:(2)4``. To
find parts, the size of an axis is split into prime factors, the slowest-varying first: 8 = 2 x 2 x 2. In
``data:(2)4`` the part has the size 4, and the factors before it have the product 2 (Shardy's notation:
pre-size and size). The result contains only the factors along which the members of a group differ.
Neighboring factors are joined to one part. An axis of 12 can be split as 2x2x3, 2x3x2 or 3x2x2. The split
whose parts have the smallest product is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

Mesh = Sequence[tuple[str, int]]
# The mesh axes, or parts of axes, along which a collective runs: ("data", "model:(2)4"); () if each group is
# a single device. None: unknown.
Axes = tuple[str, ...] | None
MAX_CUTS = 720


def text(over: Axes) -> str:
    """Return the axes ``over`` joined with a comma, as in the JSON report: ``("data", "model:(2)4")`` ->
    ``data,model:(2)4``; ``?`` if they are unknown."""
    return "?" if over is None else ",".join(over)


def names(over: Iterable[str] | None) -> set[str]:
    """Return the names of the mesh axes in ``over``, without the sizes of parts: ``("data:(2)4",)`` ->
    ``{"data"}``. The set is empty for None, unknown axes."""
    return {axis.partition(":")[0] for axis in over or ()}


def prime_factors(number: int) -> list[int]:
    """Return the prime factors of ``number`` in ascending order: 12 -> ``[2, 2, 3]``, 1 -> ``[]``."""
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    if number > 1:
        found.append(number)
    return found


def of_groups(groups: Iterable[Sequence[int]], mesh: Mesh) -> list[str] | None:
    """Return the mesh axes, or parts of axes, along which the device groups of a collective run, in mesh
    order: ``data``, ``model:(2)4``. The list is empty if every group has one member.

    Return None if a member is outside of the mesh, or if a group has only some of the devices along its axes
    or parts (``axis_index_groups``).

    Args:
      groups: for each group, the positions of its members in the mesh.
      mesh: (axis, size) in mesh order.
    """
    several = list(groups)
    differing = _differing(_from_first(several), mesh)
    if differing is None:
        return None
    found = [(name, size, run) for name, size, pairs in differing for run in _along(size, pairs)]
    members = math.prod(n for _, _, (_, n) in found)
    if any(len(set(group)) != members for group in several):
        return None
    return [name if n == size else f"{name}:({before}){n}" for name, size, (before, n) in found]


def around(groups: Iterable[Sequence[int]], mesh: Mesh) -> list[str] | None:
    """Return the names of the mesh axes along which members of one group have different coordinates, in at
    least one of a collective's groups. Return None if a member is outside of the mesh.

    Unlike for ``of_groups``, a group may have only some of the devices along these axes
    (``axis_index_groups``).

    Args:
      groups: for each group, the positions of its members in the mesh.
      mesh: (axis, size) in mesh order.
    """
    return of_pairs(_from_first(groups), mesh)


def _from_first(groups: Iterable[Sequence[int]]) -> Iterable[tuple[int, int]]:
    """Yield the pairs (first member, other member) of each group."""
    return ((group[0], other) for group in groups for other in group[1:])


def of_pairs(pairs: Iterable[Sequence[int]], mesh: Mesh) -> list[str] | None:
    """Return the names of the mesh axes along which a collective-permute sends. Along such an axis, the
    source and the target of at least one transfer have different coordinates. Return None if a position is
    outside of the mesh.

    Args:
      pairs: (source, target) of each transfer, as positions in the mesh.
      mesh: (axis, size) in mesh order.
    """
    differing = _differing(((pair[0], pair[1]) for pair in pairs), mesh)
    return None if differing is None else [name for name, _, _ in differing]


def _differing(
    pairs: Iterable[tuple[int, int]], mesh: Mesh
) -> list[tuple[str, int, set[tuple[int, int]]]] | None:
    """Return (axis, size, coordinates) for each mesh axis along which the devices of a pair have different
    coordinates. ``coordinates`` has the pairs (coordinate of one device, different coordinate of the other
    device). Return None if a position is outside of the mesh.

    Args:
      pairs: two devices each, as positions in the mesh.
      mesh: (axis, size) in mesh order.
    """
    total = math.prod(size for _, size in mesh)
    unique = set(pairs)
    if total < 1 or any(not (0 <= a < total and 0 <= b < total) for a, b in unique):
        return None
    found, stride = [], total
    for name, size in mesh:
        stride //= size
        coordinates = {(a // stride % size, b // stride % size) for a, b in unique}
        if differing := {(a, b) for a, b in coordinates if a != b}:
            found.append((name, size, differing))
    return found


def _along(size: int, pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of one mesh axis along which the two devices of a pair differ, as (product of the
    factors before the part, size of the part): ``[(2, 4)]`` for the part of size 4 of an axis of 8 = 2 x 4.
    Of several ways to split the axis, the one with the smallest product of these sizes counts.

    Args:
      size: the size of the axis.
      pairs: the coordinates of two devices along the axis, for each pair of devices.
    """
    best: list[tuple[int, int]] = [(1, size)]
    for cut in itertools.islice(_cuts(size), MAX_CUTS):
        runs = _varying(cut, size, pairs)
        if math.prod(n for _, n in runs) < math.prod(n for _, n in best):
            best = runs
    return best


def _cuts(size: int) -> Iterable[tuple[int, ...]]:
    """Return the orders of the prime factors of ``size``: 12 -> (2, 2, 3), (2, 3, 2), (3, 2, 2). For more
    than 8 factors, return only one order, because there are too many."""
    factors = prime_factors(size)
    if len(set(factors)) == 1 or len(factors) > 8:
        return [tuple(factors)]
    return dict.fromkeys(itertools.permutations(factors))


def _varying(cut: tuple[int, ...], size: int, pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of one mesh axis along which the two devices of a pair differ, as (product of the
    factors before the part, size of the part): ``[(2, 4)]`` for the last two of the factors 2, 2, 2.

    Args:
      cut: the prime factors of ``size``, the slowest-varying first.
      size: the size of the axis.
      pairs: the coordinates of two devices along the axis, for each pair of devices.
    """
    runs: list[tuple[int, int]] = []
    before, stride, joined = 1, size, False
    for factor in cut:
        stride //= factor
        differs = any(a // stride % factor != b // stride % factor for a, b in pairs)
        if differs and joined:
            runs[-1] = (runs[-1][0], runs[-1][1] * factor)
        elif differs:
            runs.append((before, factor))
        joined = differs
        before *= factor
    return runs
