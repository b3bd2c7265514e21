"""Find the mesh axes along which the groups of a collective run.

The result names a whole axis, ``data``, or a part of an axis, ``data:(2)4``. To find parts, the size of an
axis is split into prime factors: 8 = 2 x 2 x 2, with the slowest-varying factor first. ``data:(2)4`` is the
part of size 4 behind factors with the product 2 (Shardy's notation: pre-size and size). The result has the
fewest factors along which the members of a group differ, and neighboring factors are joined to one part. An
axis of 12 can be split as 2x2x3, 2x3x2 or 3x2x2: the split with the smallest parts is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

Mesh = Sequence[tuple[str, int]]
MAX_CUTS = 720


def prime_factors(number: int) -> list[int]:
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
    """Return the mesh axes, or parts of axes, along which the device groups of a collective run: ``data``,
    ``model:(2)4``. They are in mesh order. ``[]``: every group has one member. ``groups`` has the positions
    in the mesh of each group's members, ``mesh`` (axis, size) in mesh order.

    None: a member is outside of the mesh, or a group does not consist of all devices along some axes, such as
    a group of devices 0 and 7 on an axis of 8 (``axis_index_groups``). The mesh may be larger than the
    groups: the text of a program for several TPU slices lists the positions in one slice only.
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
    """Return the names of the mesh axes along which members of a group of a collective have different
    coordinates, in at least one of its groups; None: a member is outside of the mesh. ``groups`` has the
    positions in the mesh of each group's members, ``mesh`` (axis, size) in mesh order.

    This is for groups that are only a part of the devices along these axes (``axis_index_groups``), for which
    ``of_groups`` returns None.
    """
    return of_pairs(_from_first(groups), mesh)


def _from_first(groups: Iterable[Sequence[int]]) -> Iterable[tuple[int, int]]:
    return ((group[0], other) for group in groups for other in group[1:])


def of_pairs(pairs: Iterable[Sequence[int]], mesh: Mesh) -> list[str] | None:
    """Return the names of the axes of ``mesh`` (axis, size) along which a permute sends. ``pairs`` are its
    (source, target) as positions in the mesh; an axis is named if source and target of at least one pair have
    different coordinates along it. None: a position is outside of the mesh."""
    differing = _differing(((pair[0], pair[1]) for pair in pairs), mesh)
    return None if differing is None else [name for name, _, _ in differing]


def _differing(
    pairs: Iterable[tuple[int, int]], mesh: Mesh
) -> list[tuple[str, int, set[tuple[int, int]]]] | None:
    """Return (axis, size, coordinates) for each axis of ``mesh`` (axis, size) along which the two devices of
    at least one of ``pairs``, positions in the mesh, have different coordinates. ``coordinates`` are those of
    all such pairs along the axis: {(first, second)}. None: a position is outside of the mesh."""
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
    """Return the smallest parts of a mesh axis of ``size`` along which the devices of ``pairs`` differ. A
    pair is the coordinates of its two devices along the axis. ``[(2, 4)]`` is the part of size 4 behind
    factors of the axis size with the product 2."""
    best: list[tuple[int, int]] = [(1, size)]
    for cut in itertools.islice(_cuts(size), MAX_CUTS):
        runs = _varying(cut, size, pairs)
        if math.prod(n for _, n in runs) < math.prod(n for _, n in best):
            best = runs
    return best


def _cuts(size: int) -> Iterable[tuple[int, ...]]:
    """Return the orders in which the prime factors of ``size`` can be written: 12 -> (2, 2, 3), (2, 3, 2),
    (3, 2, 2). A size with more than 8 factors gives one order only, as there would be too many."""
    factors = prime_factors(size)
    if len(set(factors)) == 1 or len(factors) > 8:
        return [tuple(factors)]
    return dict.fromkeys(itertools.permutations(factors))


def _varying(cut: tuple[int, ...], size: int, pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Split a mesh axis of ``size`` into the prime factors ``cut``, in order, and return the parts along
    which the two devices of at least one of ``pairs`` differ: [(2, 4)] is the part of size 4 behind factors
    with the product 2. Neighboring factors form one part. A pair is the coordinates of its two devices along
    the axis."""
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
