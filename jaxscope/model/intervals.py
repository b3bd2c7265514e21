"""Compute the total time of many spans of time, in which overlapping spans count once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

MOST_SECONDS = 1e9  # a duration above this is a damaged number


class UnionOfSpans:
    """The union of (begin, end) spans of time in nanoseconds. Nested and overlapping spans count once."""

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._begins: list[int] = []  # of the separate parts of the union
        self._ends: list[int] = []
        self._total = 0
        for begin, end in spans:
            self.add(begin, end)

    def add(self, begin: int, end: int) -> None:
        """Add the span from ``begin`` to ``end`` to the union. A span with ``end <= begin`` is ignored."""
        if end <= begin:
            return
        if not self._ends or self._ends[-1] < begin:  # by far the most common case
            self._begins.append(begin)
            self._ends.append(end)
            self._total += end - begin
            return
        first, last = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if first < last:  # parts that overlap the new span are joined with it
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
            self._total -= sum(self._ends[first:last]) - sum(self._begins[first:last])
        self._begins[first:last], self._ends[first:last] = [begin], [end]
        self._total += end - begin

    def begins(self) -> list[int]:
        """Return the begins of the separate parts of the union, in order of time (ns)."""
        return list(self._begins)

    def with_spans(self, spans: Iterable[tuple[int, int]]) -> int:
        """Return the total nanoseconds that the union would have with ``spans``, without adding them."""
        more = UnionOfSpans(spans)
        return self._total + sum(
            end - begin - self._within(begin, end)
            for begin, end in zip(more._begins, more._ends, strict=True)
        )

    def _within(self, begin: int, end: int) -> int:
        """Return how many nanoseconds between ``begin`` and ``end`` are in the union of the added spans."""
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        return sum(
            min(end, e) - max(begin, b)
            for b, e in zip(self._begins[first:last], self._ends[first:last], strict=True)
        )


class OwnSeconds:
    """The phases of each thread, to find how long a phase took without the phases inside it."""

    def __init__(self) -> None:
        self._phases: dict[int, list[tuple[int, int, float]]] = {}  # (middle in ns, call, seconds), in order

    def own_seconds(self, thread: int, call: int, end: int, seconds: float) -> float:
        """Add a phase of ``thread``. Return its seconds, 0 or more, without the phases of other calls inside
        it. The phases inside it must have been added before.

        Args:
          call: the number of the call.
          end: when the phase ended, in nanoseconds since the epoch.
          seconds: the length of the phase.
        """
        # A phase counts as inside if its middle is inside the other phase: times and seconds come from
        # different clocks, so the begin of a phase is not exact.
        begin, phases, own = end - int(seconds * 1e9), self._phases.setdefault(thread, []), seconds
        while phases and phases[-1][0] > begin:
            _, other, inner = phases.pop()
            own -= inner if other != call else 0.0
        phases.append((end - int(seconds * 5e8), call, seconds))
        return max(0.0, own)
