"""How long at least one of many spans of time went on, kept while they come."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class Occupied:
    """The union of spans, in ns. Nested and overlapping ones count once.

    A span that comes in order of time costs the same however many there were; one from far back, more.
    """

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._begins: list[int] = []  # of the parts of the union, which do not touch
        self._ends: list[int] = []
        self._total = 0
        for begin, end in spans:
            self.add(begin, end)

    def add(self, begin: int, end: int) -> None:
        if end <= begin:
            return
        first, last = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if first < last:  # these parts become one with it
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
            self._total -= sum(self._ends[first:last]) - sum(self._begins[first:last])
        self._begins[first:last], self._ends[first:last] = [begin], [end]
        self._total += end - begin

    def with_spans(self, spans: Iterable[tuple[int, int]]) -> int:
        """ns of the union with ``spans`` too, which are not added."""
        more = Occupied(spans)
        return self._total + sum(
            end - begin - self._within(begin, end)
            for begin, end in zip(more._begins, more._ends, strict=True)
        )

    def _within(self, begin: int, end: int) -> int:
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        return sum(
            min(end, e) - max(begin, b)
            for b, e in zip(self._begins[first:last], self._ends[first:last], strict=True)
        )
