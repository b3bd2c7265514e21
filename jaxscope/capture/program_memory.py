"""Read how much memory a compiled program takes, in a thread beside the program.

On a CPU, XLA computes these figures in 2 % of the time of the compilation, which is as much as all other work
of a recording. XLA releases the GIL meanwhile, so the program goes on. If the figures are not ready when the
event ``Compiled`` is written, an event ``MemoryRead`` follows with them. The thread refers to the executable
only until XLA has read it.
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
      compile_s: the seconds that its compilation took. If these are few, the figures are read at once,
        without a thread.

    Attributes:
      memory: the figures, in bytes on one device; None: not read yet, or XLA has none.
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
            begun.acquire()  # waits until the thread runs, because the caller may hold the GIL for long now
        else:
            self.memory = shield.attempt("memory", texts.memory, executable)
            self.read = self.ended = True

    def _run(self, executable: Any, begun: _thread.LockType) -> None:
        """Read the memory figures of ``executable``, then call the function that was passed to ``then`` with
        them. Before that, release the lock ``begun``, to show that this thread runs."""
        begun.release()
        self.memory = shield.attempt("memory", texts.memory, executable)
        self.read = True
        self._call_late()
        self.ended = True

    def _call_late(self) -> None:
        """Call the function that was passed to ``then`` with the memory figures, unless it was called
        already."""
        if self._late is not None and self._once.acquire(blocking=False):
            shield.attempt("memory", self._late, self.memory)

    def then(self, late: Callable[[Memory | None], object]) -> None:
        """Call ``late`` once with the memory figures: at once if they are read already, else in the thread
        that reads them, as soon as they are read."""
        self._late = late
        if self.read:  # meanwhile: the thread may have ended without seeing ``late``
            self._call_late()

    def wait(self) -> None:
        """Wait until the thread that reads the figures has ended."""
        while not self.ended:
            time.sleep(POLL_S)


class Readings:
    """The readings of programs' memory figures that are in progress in threads, while the program continues.

    Args:
      write: is called with the number of a call and the memory figures of the program that this call
        compiled.
    """

    def __init__(self, write: Callable[[int, Memory], None]) -> None:
        self._write = write
        self._open: list[MemoryReading] = []

    def follow(self, call: int, reading: MemoryReading) -> None:
        """Write the figures of ``reading`` for the call number ``call`` as soon as they are read. If more
        than MOST_AT_ONCE readings are in progress now, wait until this one has ended."""
        self._open = [r for r in self._open if not r.ended]
        self._open.append(reading)
        reading.then(lambda memory: self._write(call, memory) if memory is not None else None)
        if len(self._open) > MOST_AT_ONCE:
            reading.wait()

    def wait(self) -> None:
        """Wait until the memory figures of all programs are written."""
        for reading in self._open:
            reading.wait()
