"""Read how much memory a compiled program takes, in a thread beside the program.

XLA needs 2 % of a compilation's time on a CPU to compute these figures, as much as all other work of a
recording together, and releases the GIL meanwhile. So the program goes on. Figures that are not ready when
the event ``Compiled`` is written follow in an event ``MemoryRead``. The executable is referred to only until
XLA has read it.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from typing import Any

from jaxscope.capture import shield, texts
from jaxscope.schema.keys import Memory

WORTH_A_THREAD_S = 0.1  # of compilation; the figures of a smaller program are read in less than 2 ms
MOST_AT_ONCE = 2  # executables that are read while the program goes on; for a third one the program waits
POLL_S = 0.002


class MemoryReading:
    """Reads the memory figures of one program in a thread, which is started immediately.

    Args:
      executable: the compiled program.
      compile_s: the seconds that its compilation took. Figures of a program that compiled fast are read at
        once, without a thread.

    Attributes:
      memory: bytes on one device; None: not read yet, or XLA has no figures.
      read: whether ``memory`` is final.
      ended: whether the thread has no more work.
    """

    def __init__(self, executable: Any, compile_s: float) -> None:
        self.memory: Memory | None = None
        self.read = self.ended = False
        self._late: Callable[[Memory | None], object] | None = None
        self._once = _thread.allocate_lock()  # acquired by the thread that calls _late
        begun = _thread.allocate_lock()
        if compile_s >= WORTH_A_THREAD_S:
            begun.acquire()
            try:
                _thread.start_new_thread(self._run, (executable, begun))
            except RuntimeError:  # the system has no more threads, or the interpreter ends
                self._run(executable, begun)
            begun.acquire()  # waits until the thread runs: the caller may then hold the GIL for long
        else:
            self.memory = shield.attempt("memory", texts.memory, executable)
            self.read = self.ended = True

    def _run(self, executable: Any, begun: _thread.LockType) -> None:
        """Read the figures and pass them on. ``begun`` is released as the first action."""
        begun.release()
        self.memory = shield.attempt("memory", texts.memory, executable)
        self.read = True
        self._call_late()
        self.ended = True

    def _call_late(self) -> None:
        """Call the function of ``then`` with the figures, if there is one and it was not called yet."""
        if self._late is not None and self._once.acquire(blocking=False):
            shield.attempt("memory", self._late, self.memory)

    def then(self, late: Callable[[Memory | None], object]) -> None:
        """Call ``late`` with the figures once they are read, at once if they are. It is called once, perhaps
        in the thread that reads."""
        self._late = late
        if self.read:  # meanwhile: the thread may have ended without seeing ``late``
            self._call_late()

    def wait(self) -> None:
        """Return when the thread has ended."""
        while not self.ended:
            time.sleep(POLL_S)


class Readings:
    """The readings of memory figures that are in progress while the program continues.

    Args:
      write: is called with the number of a call and the figures of the program that it compiled.
    """

    def __init__(self, write: Callable[[int, Memory], None]) -> None:
        self._write = write
        self._open: list[MemoryReading] = []

    def follow(self, call: int, reading: MemoryReading) -> None:
        """Have the figures of ``reading`` written for the call number ``call`` when they are read.

        If MOST_AT_ONCE readings are in progress already, return only when this one has ended.
        """
        self._open = [r for r in self._open if not r.ended]
        self._open.append(reading)
        reading.then(lambda memory: self._write(call, memory) if memory is not None else None)
        if len(self._open) > MOST_AT_ONCE:
            reading.wait()

    def wait(self) -> None:
        """Return when all figures are written."""
        for reading in self._open:
            reading.wait()
