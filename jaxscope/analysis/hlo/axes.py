"""Find the mesh axes along which groups of devices run.

Every axis is cut into prime factors; the answer is the smallest set of them along which the members
of a group differ, runs of neighbours put together again: ``data`` for a whole axis, ``data:(1)2``
for a sub-axis of size 2 that has 1 before it (Shardy's spelling, pre-size and size). An axis of 12
can be cut as 2x2x3, 2x3x2 or 3x2x2: the cut that needs least is taken.
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
    """Return the axes in mesh order; ``[]`` if every group has one member.

    None for a member outside of the mesh, and for groups that are not all devices along some axes: 0 with 7
    and 1 with 6 of an axis of 8 (``axis_index_groups``). A mesh larger than the groups is fine: the texts of
    a program for several TPU slices list the positions of one slice only.
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
    """Return the whole axes along which the members of any group differ; None for a member outside of the
    mesh.
    """
    return of_pairs(_from_first(groups), mesh)


def _from_first(groups: Iterable[Sequence[int]]) -> Iterable[tuple[int, int]]:
    return ((group[0], other) for group in groups for other in group[1:])


def of_pairs(pairs: Iterable[Sequence[int]], mesh: Mesh) -> list[str] | None:
    """Return the whole axes on which the coordinates of the two ends of any pair differ."""
    differing = _differing(((pair[0], pair[1]) for pair in pairs), mesh)
    return None if differing is None else [name for name, _, _ in differing]


def _differing(
    pairs: Iterable[tuple[int, int]], mesh: Mesh
) -> list[tuple[str, int, set[tuple[int, int]]]] | None:
    """Return the axes on which pairs differ: (name, size, the pairs of coordinates that differ)."""
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
    """Return the smallest runs of factors along which the pairs differ, each as
    (product before it, its product).
    """
    best: list[tuple[int, int]] = [(1, size)]
    for cut in itertools.islice(_cuts(size), MAX_CUTS):
        runs = _varying(cut, size, pairs)
        if math.prod(n for _, n in runs) < math.prod(n for _, n in best):
            best = runs
    return best


def _cuts(size: int) -> Iterable[tuple[int, ...]]:
    """Return every distinct order of the prime factors; a power of two has one."""
    factors = prime_factors(size)
    if len(set(factors)) == 1 or len(factors) > 8:
        return [tuple(factors)]
    return dict.fromkeys(itertools.permutations(factors))


def _varying(cut: tuple[int, ...], size: int, pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return runs of digits that differ in any pair, as (product of the digits before, product of the
    run)."""
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
