"""Count calls. Each call costs one addition and one store. The count is stored in a file that is mapped into
memory (``log.counts``), so that it is not lost when the process is killed."""

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
    """A count that starts at 0. Each new value is also stored by ``cells[index] = value`` in a memory-mapped
    file, so that it is not lost when the process is killed. If no file can be mapped, the count is written to
    the log instead.

    Args:
      event: returns the event to log. It is called with (the count, the index of the place in the file). The
        index is None if the count is not stored in a file.
    """

    __slots__ = ("_event", "_writer", "_written", "cell")

    def __init__(self, writer: Writer, event: Callable[[int, int | None], Event]) -> None:
        self._writer = writer
        self._event = event
        self.due = 0
        self.restart()

    def restart(self) -> None:
        """Set the count to 0, at the beginning and in a forked child. The next new value reserves a new place
        in a memory-mapped file, because a forked child has its own file."""
        self.value = self._written = self.index = 0
        self.cell: int | None = None
        self.cells: Any = _Unplaced(self)

    def add(self) -> bool:
        """Add one to the count and store it. Return whether the call needs more work than counting: False
        here, in a subclass perhaps True."""
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
        """Reserve a cell (a place for one number) in a memory-mapped file, and store the count there from now
        on. Write the index of the cell to the log. If no file can be mapped, write the count to the log at
        most ten times a second from now on."""
        cell = self._writer.cell()
        if cell is None:
            self.cells = _InTheLog(self)
        else:
            self.cell, page, self.index = cell
            page[self.index] = self.value
            self.cells = page
        self.flush()


class _Unplaced:
    """Stands for the memory-mapped file until the count is first stored, and then calls the count's
    ``place``. So the code that counts a call need not check whether there is a place for the count."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def __setitem__(self, index: int, value: int) -> None:
        shield.attempt("counts", self._count.place)


class _InTheLog:
    """Stands for the memory-mapped file if no file can be mapped. Storing the count writes it to the log, at
    most ten times a second."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._due = 0

    def __setitem__(self, index: int, value: int) -> None:
        now = time.monotonic_ns()
        if now >= self._due:
            self._due = now + INTERVAL_NS
            self._count.flush()
