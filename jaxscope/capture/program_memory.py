"""Read how much memory a compiled program takes, in a thread beside the program.

On a CPU, XLA needs 2 % of the compilation time to compute these figures. This is as much as all other work of
a recording. XLA releases the GIL meanwhile, so the program goes on. If the figures are not ready when the
event ``Compiled`` is written to the log, an event ``MemoryRead`` follows with them. The executable is kept
alive only while the thread runs.
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
    """Reads the memory figures of one compiled program, in a new thread if its compilation took long.

    Args:
      executable: the compiled program.
      compile_s: the seconds that its compilation took. Below WORTH_A_THREAD_S, the constructor itself reads
        the figures.

    Attributes:
      memory: the figures, in bytes on one device; None: they are not read yet, or reading them failed.
      read: whether ``memory`` is final.
      ended: False while a thread still reads or passes on the figures, else True.
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
                shield.start_thread(self._run, executable, begun)
            except RuntimeError:  # the system has no more threads, or the interpreter ends
                self._run(executable, begun)
            begun.acquire()  # waits until the thread runs, because the caller may hold the GIL for long now
        else:
            self.memory = shield.attempt("memory", texts.memory, executable)
            self.read = self.ended = True

    def _run(self, executable: Any, begun: _thread.LockType) -> None:
        """Release the lock ``begun``, read the memory figures of ``executable``, then pass them to the
        function given to ``then``, if there is one."""
        begun.release()
        self.memory = shield.attempt("memory", texts.memory, executable)
        self.read = True
        self._call_late()
        self.ended = True

    def _call_late(self) -> None:
        """Pass the memory figures to the function that was given to ``then``. Do nothing if there is none, or
        if this was done before."""
        if self._late is not None and self._once.acquire(blocking=False):
            shield.attempt("memory", self._late, self.memory)

    def then(self, late: Callable[[Memory | None], object]) -> None:
        """Call ``late`` once with the memory figures, or with None if they could not be read: at once if
        reading has ended, else later in the thread that reads."""
        self._late = late
        if self.read:  # meanwhile: the thread may have ended without seeing ``late``
            self._call_late()

    def wait(self) -> None:
        """Wait until the thread that reads the memory figures has ended, also the passing on of the
        figures."""
        while not self.ended:
            time.sleep(POLL_S)


class Readings:
    """Writes the memory figures that threads read while the program continues, and limits the number of these
    threads.

    Args:
      write: is called as ``write(call, memory)`` when figures are read: with the number of the call that
        compiled the program, and the figures.
    """

    def __init__(self, write: Callable[[int, Memory], None]) -> None:
        self._write = write
        self._open: list[MemoryReading] = []

    def follow(self, call: int, reading: MemoryReading) -> None:
        """Pass ``call``, the number of a call, and the memory figures of ``reading`` to ``write`` as soon as
        they are read. If reading them fails, ``write`` is not called. If more than MOST_AT_ONCE readings are
        in progress, wait until ``reading`` has ended."""
        self._open = [r for r in self._open if not r.ended]
        self._open.append(reading)
        reading.then(lambda memory: self._write(call, memory) if memory is not None else None)
        if len(self._open) > MOST_AT_ONCE:
            reading.wait()

    def wait(self) -> None:
        """Wait until all readings of memory figures in progress have ended, so that the figures are
        written."""
        for reading in self._open:
            reading.wait()
