"""Find the parts of a sequence of numbers that repeat, such as ``1 2 3 1 2 3 1 2 3``. The numbers stand for
operations: a traced Python loop gives such a repetition."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import msgspec

GRAMS = (1, 4, 16)  # the distance between equal windows of these lengths may be a period
CANDIDATES = 24  # the most distances that are tried for each length
MAX_STRETCHES = 1000
FULL = 0.8  # a stretch with a shorter period is preferred if it has this share of the length


class Stretch(msgspec.Struct, frozen=True):
    """A part of a sequence that repeats: ``sequence[start : start + period * times]`` consists of ``times``
    equal parts.

    Attributes:
      period: the length of one of the equal parts.
      length: the length of all parts, including an incomplete part at the end.
    """

    start: int
    period: int
    times: int
    length: int

    @property
    def end(self) -> int:
        """The index after the last complete part."""
        return self.start + self.period * self.times


def find(sequence: Sequence[int], least_times: int = 3) -> list[Stretch]:
    """Return the parts of a sequence that repeat at least ``least_times`` times, such as ``1 2 3 1 2 3 1 2
    3``. They do not overlap: longer parts are chosen first. But an overlapping part with a shorter period is
    chosen instead if it has at least FULL (0.8) of the length."""
    found: list[Stretch] = []
    for period in candidates(sequence):
        equal = bytes(map(operator.eq, sequence, islice(sequence, period, None)))
        run = b"\1" * min(period * (least_times - 1), len(equal) + 1)
        at = 0
        while True:
            begin = equal.find(run, at)
            if begin < 0:
                break
            end = equal.find(b"\0", begin)
            end = len(equal) if end < 0 else end
            found.append(Stretch(begin, period, 1 + (end - begin) // period, end - begin + period))
            at = end + 1
    return _choose(found)


def candidates(sequence: Sequence[int]) -> list[int]:
    """Return possible periods of repetitions in a sequence, in increasing order. A period is a distance at
    which the same number, or the same few numbers in a row, often occur again: ``[3]`` for ``1 2 3 1 2 3``.
    """
    chosen: set[int] = set()
    n = len(sequence)
    for size in GRAMS:
        last: dict[object, int] = {}
        gaps: Counter[int] = Counter()
        windows = zip(*(islice(sequence, k, None) for k in range(size)), strict=False)
        for i, window in enumerate(windows):
            before = last.get(window)
            if before is not None:
                gaps[i - before] += 1
            last[window] = i
        chosen.update(gap for gap, _ in gaps.most_common(CANDIDATES) if 2 * gap <= n)
    return sorted(chosen)


def _choose(stretches: list[Stretch]) -> list[Stretch]:
    """Choose stretches that do not overlap, as ``find`` says, from at most MAX_STRETCHES (1,000) longest
    ones."""
    chosen: list[Stretch] = []
    waiting = sorted(stretches, key=lambda s: (-s.length, s.period))[:MAX_STRETCHES]
    while waiting:
        longest = waiting[0]
        rivals = [s for s in waiting if _overlap(s, longest) and s.length >= FULL * longest.length]
        best = min(rivals, key=lambda s: s.period)
        chosen.append(best)
        waiting = [s for s in waiting if s is not longest and not _overlap(s, best)]
    return chosen


def _overlap(a: Stretch, b: Stretch) -> bool:
    return a.start < b.end and b.start < a.end
