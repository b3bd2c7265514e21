"""Read how much memory a compiled program takes, in a thread beside the program.

XLA needs 2 % of a compilation's time on a CPU to compute these figures, as much as all the rest of a
recording together, and releases the GIL for it. So the program goes on meanwhile: figures that are not ready
when Compiled is written follow in an event of their own. The executable is referred to until XLA has read it,
no longer.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from typing import Any

from jaxscope.capture import shield, texts
from jaxscope.schema.keys import Memory

WORTH_A_THREAD_S = 0.1  # of compilation; the figures of a smaller program are read in less than 2 ms
MOST_AT_ONCE = 2  # executables that are read while the program goes on; it waits for a further one
POLL_S = 0.002


class MemoryReading:
    """Reads the memory figures of one program in a thread, which is started immediately.

    Attributes:
      memory: bytes on one device; None: not read yet, or XLA has no figures.
      read: whether ``memory`` is final.
      ended: whether the thread has no more work.
    """

    def __init__(self, executable: Any, compile_s: float) -> None:
        self.memory: Memory | None = None
        self.read = self.ended = False
        self._late: Callable[[Memory | None], object] | None = None
        self._once = _thread.allocate_lock()  # acquired by the one that calls _late
        begun = _thread.allocate_lock()
        if compile_s >= WORTH_A_THREAD_S:
            begun.acquire()
            try:
                _thread.start_new_thread(self._run, (executable, begun))
            except RuntimeError:  # the system has no more threads, or the interpreter ends
                self._run(executable, begun)
            begun.acquire()  # from here on XLA computes without the GIL, which the caller may hold for long
        else:
            self.memory = shield.attempt("memory", texts.memory, executable)
            self.read = self.ended = True

    def _run(self, executable: Any, begun: _thread.LockType) -> None:
        begun.release()
        self.memory = shield.attempt("memory", texts.memory, executable)
        self.read = True
        self._call_late()
        self.ended = True

    def _call_late(self) -> None:
        if self._late is not None and self._once.acquire(blocking=False):
            shield.attempt("memory", self._late, self.memory)

    def then(self, late: Callable[[Memory | None], object]) -> None:
        """Call ``late`` with the figures once, when they are read."""
        self._late = late
        if self.read:  # meanwhile: the thread may have ended without seeing ``late``
            self._call_late()

    def wait(self) -> None:
        """Return when the thread has ended."""
        while not self.ended:
            time.sleep(POLL_S)


class Readings:
    """The readings that are in progress while the program continues.

    Args:
      write: receives the number of a call and the figures of the program that it compiled.
    """

    def __init__(self, write: Callable[[int, Memory], None]) -> None:
        self._write = write
        self._open: list[MemoryReading] = []

    def follow(self, call: int, reading: MemoryReading) -> None:
        """Write the figures of ``reading`` when they are read; wait for them where others are being read."""
        self._open = [r for r in self._open if not r.ended]
        self._open.append(reading)
        reading.then(lambda memory: self._write(call, memory) if memory is not None else None)
        if len(self._open) > MOST_AT_ONCE:
            reading.wait()

    def wait(self) -> None:
        """Return when all figures are written."""
        for reading in self._open:
            reading.wait()
