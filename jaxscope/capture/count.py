"""A number that grows on every call: one addition and one store, and it is on disk (log.counts).

Knows nothing of what is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from jaxscope.capture import shield
from jaxscope.capture.warm import Tick
from jaxscope.log.writer import Writer
from jaxscope.schema.events import Event

INTERVAL_NS = 100_000_000


class Count(Tick):
    """Counts from 0. ``told(value, cell)`` makes the event that says the count and where it goes on.

    ``cells[index] = value`` stores it: to the mapped page, or to what stands in its place.
    """

    __slots__ = ("_told", "_writer", "_written", "cell")

    def __init__(self, writer: Writer, told: Callable[[int, int | None], Event]) -> None:
        self._writer = writer
        self._told = told
        self.due = 0
        self.restart()

    def restart(self) -> None:
        """From 0 again, in a cell of the process that counts next: a forked child has its own file."""
        self.value = self._written = self.index = 0
        self.cell: int | None = None
        self.cells: Any = _Nowhere(self)

    def add(self) -> bool:
        """One more. True: there is more to do, for those who say when there is."""
        self.value = value = self.value + 1
        self.cells[self.index] = value
        return False

    def grow(self, by: int) -> None:
        """So many more."""
        self.value = value = self.value + by
        self.cells[self.index] = value

    def flush(self) -> None:
        """Write the count to the log, where it grew."""
        if self.value != self._written:
            self._written = self.value
            self._writer.emit(self._told(self.value, self.cell))

    def place(self) -> None:
        """Find the number its place on disk, and say in the log which it is."""
        found = self._writer.cell()
        if found is None:
            self.cells = _InTheLog(self)
        else:
            self.cell, page, self.index = found
            page[self.index] = self.value
            self.cells = page
        self.flush()


class _Nowhere:
    """The first number finds its place. It stands where the page will, so that a warm call asks nothing."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def __setitem__(self, index: int, value: int) -> None:
        shield.attempt("counts", self._count.place)


class _InTheLog:
    """Where no page can be had: written ten times a second at most, and only while calls come."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._due = 0

    def __setitem__(self, index: int, value: int) -> None:
        now = time.monotonic_ns()
        if now >= self._due:
            self._due = now + INTERVAL_NS
            self._count.flush()
