"""Count calls. To count a call costs one addition and one store. The count is stored in a file that is mapped
into memory (``log.counts``), so that it is not lost when the process is killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from jaxscope.capture import shield
from jaxscope.capture.warm import Tick
from jaxscope.log.writer import Writer
from jaxscope.schema.events import Event

INTERVAL_NS = 100_000_000  # between two writes of a count to the log


class Count(Tick):
    """A count that starts at 0. Each new value is also stored (``cells[index] = value``) in a file that is
    mapped into memory, so that the count is not lost when the process is killed.

    A place in this file is reserved when the count first changes. Until then, ``cells`` is an object that
    reserves the place when a value is stored in it.

    Args:
      event: returns the event that is to be written to the log. It is called with (the count, the index of
        the place in the file where later counts are stored). The index is None if later counts are not stored
        in a file.
    """

    __slots__ = ("_event", "_writer", "_written", "cell")

    def __init__(self, writer: Writer, event: Callable[[int, int | None], Event]) -> None:
        self._writer = writer
        self._event = event
        self.due = 0
        self.restart()

    def restart(self) -> None:
        """Set the count to 0, at the beginning and in a forked child, which has its own mapped file."""
        self.value = self._written = self.index = 0
        self.cell: int | None = None
        self.cells: Any = _Unplaced(self)

    def add(self) -> bool:
        """Add one to the count and store it. Return False; subclasses return True if the call needs more
        work."""
        self.value = value = self.value + 1
        self.cells[self.index] = value
        return False

    def grow(self, by: int) -> None:
        """Add ``by`` to the count and store it."""
        self.value = value = self.value + by
        self.cells[self.index] = value

    def flush(self) -> None:
        """Write the count to the log if it has changed since it was last written."""
        if self.value != self._written:
            self._written = self.value
            self._writer.emit(self._event(self.value, self.cell))

    def place(self) -> None:
        """Reserve a cell (a place for one number) in the mapped file, and store the count there from now on.
        Write the index of the cell to the log. If no file can be mapped, the count itself is written to the
        log from time to time."""
        cell = self._writer.cell()
        if cell is None:
            self.cells = _InTheLog(self)
        else:
            self.cell, page, self.index = cell
            page[self.index] = self.value
            self.cells = page
        self.flush()


class _Unplaced:
    """Used in place of the mapped file until a count is first stored; then it reserves a cell (a place for
    one number) in the file. So the code that counts a call does not have to check whether there is a cell."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def __setitem__(self, index: int, value: int) -> None:
        shield.attempt("counts", self._count.place)


class _InTheLog:
    """Used in place of the mapped file if no file can be mapped: writes the count to the log, at most ten
    times a second."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._due = 0

    def __setitem__(self, index: int, value: int) -> None:
        now = time.monotonic_ns()
        if now >= self._due:
            self._due = now + INTERVAL_NS
            self._count.flush()
