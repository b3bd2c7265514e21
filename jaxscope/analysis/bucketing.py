"""Observed sizes -> a few sizes to pad to, with the number of compilations and the padding they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

MOST = 6  # bucket sizes offered
CREEPING = 4  # calls with as much more each, before it is no chance
MAX_SIZES = 400  # distinct sizes looked at one by one; beyond, neighbours are taken together


class Choice(msgspec.Struct, frozen=True):
    """``sizes`` to pad to, ascending; as many compilations; ``padding_share`` of all padded elements is
    padding.
    """

    sizes: list[int]
    compilations: int
    padding_share: float


def creeps(sizes: Sequence[int]) -> bool:
    """Return whether each call is larger by the same amount: padding then only delays the next
    compilation.
    """
    steps = {b - a for a, b in pairwise(sizes)}
    return len(sizes) >= CREEPING and len(steps) == 1 and steps.pop() > 0


def choices(observed: Mapping[int, int]) -> list[Choice]:
    """Return, for k = 1 to MOST, the k sizes with the least padding. If fewer sizes were observed, there
    are fewer results.

    Every observed size is padded to the next chosen size that is not smaller. One of the best sets consists
    of observed sizes only, because lowering a chosen size to the next observed size reduces the padding. So
    it is enough to split the sorted sizes into k runs, each of which is padded to its largest size. Dynamic
    programming finds the split with the least padding in O(k n^2).

    Args:
      observed: how often each size was observed. Sizes are at least 0, counts at least 1.
    """
    sizes = sorted((s, n) for s, n in observed.items() if s >= 0 and n > 0)
    if not sizes:
        return []
    total = sum(s * n for s, n in sizes)
    while len(sizes) > MAX_SIZES:
        sizes = [
            (pair[-1][0], sum(n for _, n in pair))
            for pair in (sizes[i : i + 2] for i in range(0, len(sizes), 2))
        ]
    counts = [0]
    for _, n in sizes:
        counts.append(counts[-1] + n)
    # least[k][j]: least padded elements when the first j sizes go into k runs; cut[k][j]: where the last
    # begins.
    many = len(sizes)
    least = [[0.0] + [float("inf")] * many]
    cut: list[list[int]] = [[0] * (many + 1)]
    found: list[Choice] = []
    for k in range(1, min(MOST, many) + 1):
        row, where = [float("inf")] * (many + 1), [0] * (many + 1)
        for j in range(k, many + 1):
            top = sizes[j - 1][0]
            for i in range(k - 1, j):
                cost = least[k - 1][i] + top * (counts[j] - counts[i])
                if cost < row[j]:
                    row[j], where[j] = cost, i
        least.append(row)
        cut.append(where)
        padded = row[many]
        chosen, j = [], many
        for level in range(k, 0, -1):
            chosen.append(sizes[j - 1][0])
            j = cut[level][j]
        found.append(Choice(chosen[::-1], k, (padded - total) / padded if padded else 0.0))
    return found
