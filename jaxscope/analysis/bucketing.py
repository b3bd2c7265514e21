"""Choose a few sizes to which arrays are padded, so that a function is compiled only for these sizes. For
each number of sizes, compute the best sizes and the share of padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

MOST = 6  # the most sizes in one choice
MIN_CALLS = 4  # so many calls that grow by the same amount are not a coincidence
A_RESTART = 3  # at least so many calls must grow for each call that starts again
MAX_SIZES = 400  # if there are more distinct sizes, neighbors are merged


class Choice(msgspec.Struct, frozen=True):
    """A set of sizes, ascending, to which arrays are padded. The function is compiled once for each size.

    Attributes:
      sizes: the sizes.
      compilations: the number of compilations, equal to the number of sizes.
      padding_share: the share of padding in all elements after padding, from 0 to 1.
    """

    sizes: list[int]
    compilations: int
    padding_share: float


def grows_steadily(sizes: Sequence[int]) -> bool:
    """Return whether an axis grows by one fixed amount from call to call, as in 64, 65, 66, 67. At most one
    in four steps may be a restart with the same or a smaller size.

    Args:
      sizes: the size of the axis in each call, in order. The result is False for fewer than ``MIN_CALLS`` (4)
        sizes.
    """
    steps = [b - a for a, b in pairwise(sizes)]
    longer = [n for n in steps if n > 0]
    restarts = len(steps) - len(longer)
    return len(set(longer)) == 1 and len(longer) >= max(MIN_CALLS - 1, A_RESTART * restarts)


def choices(observed: Mapping[int, int]) -> list[Choice]:
    """Return the best set of 1 size to pad to, of 2 sizes, and so on, up to ``MOST`` (6) sizes or the number
    of observed sizes. The best set has the least padding, if each observed size is padded to the smallest
    chosen size that is not below it.

    Only observed sizes are chosen. More than ``MAX_SIZES`` (400) observed sizes are first merged to fewer.

    Args:
      observed: size -> how often it was observed. Negative sizes and counts below 1 are ignored.
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
    # least[k][j]: the fewest elements, with padding, of the first j sizes in k groups. cut[k][j]: the index
    # at which the last of these groups begins.
    size_count = len(sizes)
    least = [[0.0] + [float("inf")] * size_count]
    cut: list[list[int]] = [[0] * (size_count + 1)]
    found: list[Choice] = []
    for k in range(1, min(MOST, size_count) + 1):
        row, where = [float("inf")] * (size_count + 1), [0] * (size_count + 1)
        for j in range(k, size_count + 1):
            top = sizes[j - 1][0]
            for i in range(k - 1, j):
                cost = least[k - 1][i] + top * (counts[j] - counts[i])
                if cost < row[j]:
                    row[j], where[j] = cost, i
        least.append(row)
        cut.append(where)
        padded = row[size_count]
        chosen, j = [], size_count
        for level in range(k, 0, -1):
            chosen.append(sizes[j - 1][0])
            j = cut[level][j]
        found.append(Choice(chosen[::-1], k, (padded - total) / padded if padded else 0.0))
    return found
