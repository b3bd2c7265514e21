"""Find the mesh axes along which the groups of a collective run.

The result names a whole axis, ``data``, or a part of an axis. Device coordinates along an axis of size 8 have
the digits 2 x 2 x 2, the major digit first. ``data:(2)4`` is the part of size 4 that follows digits with the
product 2 (Shardy's spelling, pre-size and size). Every axis is split into prime factors. The result has the
fewest factors along which the members of a group differ, and neighbouring factors are one part. An axis of 12
can be split as 2x2x3, 2x3x2 or 3x2x2: the split with the smallest parts is used.
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
    """Return the axes along which the groups run, in mesh order; ``[]``: every group has one member.

    None: a member is outside of the mesh, or the groups are not all devices along some axes, such as 0 with 7
    and 1 with 6 of an axis of 8 (``axis_index_groups``). The mesh may be larger than the groups: the texts of
    a program for several TPU slices list the positions of one slice only.

    Args:
      groups: the positions of the members of each group.
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
    """Return the whole axes along which the members of any group differ; None: a member is outside of the
    mesh.
    """
    return of_pairs(_from_first(groups), mesh)


def _from_first(groups: Iterable[Sequence[int]]) -> Iterable[tuple[int, int]]:
    return ((group[0], other) for group in groups for other in group[1:])


def of_pairs(pairs: Iterable[Sequence[int]], mesh: Mesh) -> list[str] | None:
    """Return the whole axes along which source and target of any pair differ; None: a position is outside of
    the mesh.

    Args:
      pairs: (source, target) of a permute, as positions.
    """
    differing = _differing(((pair[0], pair[1]) for pair in pairs), mesh)
    return None if differing is None else [name for name, _, _ in differing]


def _differing(
    pairs: Iterable[tuple[int, int]], mesh: Mesh
) -> list[tuple[str, int, set[tuple[int, int]]]] | None:
    """Return (axis, size, coordinates) for each axis along which a pair differs; None: a position is outside
    of the mesh.

    The coordinates are those of the pairs that differ along this axis: {(first, second)}.
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
    """Return the smallest parts of an axis along which the pairs differ, each as (product of the factors
    before it, size).

    Args:
      size: the size of the axis.
      pairs: (first, second) coordinates along the axis.
    """
    best: list[tuple[int, int]] = [(1, size)]
    for cut in itertools.islice(_cuts(size), MAX_CUTS):
        runs = _varying(cut, size, pairs)
        if math.prod(n for _, n in runs) < math.prod(n for _, n in best):
            best = runs
    return best


def _cuts(size: int) -> Iterable[tuple[int, ...]]:
    """Return every distinct order of the prime factors of ``size``; a power of two has only one."""
    factors = prime_factors(size)
    if len(set(factors)) == 1 or len(factors) > 8:
        return [tuple(factors)]
    return dict.fromkeys(itertools.permutations(factors))


def _varying(cut: tuple[int, ...], size: int, pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of an axis along which any pair differs, each as (product of the factors before it,
    size).

    Args:
      cut: the prime factors of the axis, in order.
      size: the size of the axis.
      pairs: (first, second) coordinates along the axis.
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
