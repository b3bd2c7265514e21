"""Record where the main thread of a process of a job is, while nothing else is
recorded: who waits, and for whom.

A thread looks every two seconds at the counters that Linux has of the main thread: whether it has run since.
It writes an event where the main thread has waited for a while, where it goes on, and where it runs without
an event of its own for a while; a job that makes progress writes few. There is no such thread in a program of
one process, and none where the system has no such counters.
"""

from __future__ import annotations

import _thread
import threading
import time
from pathlib import Path

from jaxscope.capture import frames, shield
from jaxscope.capture.waiting_thread import tops
from jaxscope.log.writer import Writer
from jaxscope.schema.events import MainThreadSeen
from jaxscope.schema.keys import Frame

LOOK_S = 2.0  # at most
LOOKS = 5  # before it is recorded that the main thread waits, and that it runs without an event
PERIODS = 50  # recorded waits, after which only those of twice the length are
COUNTERS = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


class MainThread:
    """Looks at the main thread of this process until ``stop``.

    Args:
      patience_s: seconds without progress after which the waiting ranks are named.
    """

    def __init__(self, writer: Writer, patience_s: float) -> None:
        self._writer = writer
        self._look_s = min(LOOK_S, patience_s / (2 * LOOKS))
        self._ident = threading.main_thread().ident
        self._status = Path(f"/proc/self/task/{threading.main_thread().native_id}/status")
        self._stopped = _thread.allocate_lock()  # released: the thread ends
        self._stopped.acquire()
        self._switches: tuple[str, ...] | None = None
        self._ran_ns = 0  # when it had run last
        self._waits = False  # the latest event is that it waits
        self._periods = 0
        self._events = 0  # of the log at the latest change
        self._changed_ns = 0  # when the log grew last

    def start(self) -> None:
        """Start the thread. It is not one of Python's ``threading``: the program does not see it there.

        Raises:
          OSError: this system does not have the counters that the thread reads.
        """
        self._ran_ns = self._changed_ns = time.time_ns()
        self._switches = self._read()
        _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        """End the thread, without waiting for it."""
        if self._stopped.locked():
            self._stopped.release()

    def _run(self) -> None:
        while not self._stopped.acquire(timeout=self._look_s):
            shield.attempt("main_thread", self._look, time.time_ns())

    def _read(self) -> tuple[str, ...]:
        lines = self._status.read_text().splitlines()
        return tuple(line for line in lines if line.startswith(COUNTERS))

    def _look(self, now: int) -> None:
        switches, wait_ns = self._read(), self._look_s * LOOKS * 1e9
        if self._events != self._writer.events:
            self._events, self._changed_ns = self._writer.events, now
        if switches != self._switches:
            self._switches, self._ran_ns = switches, now
            if self._waits:
                self._waits = False
                self._write(blocked=False, since_ns=now, stack=[])
            elif self._changed_ns and now - self._changed_ns >= wait_ns:
                # It runs and nothing is recorded: written once, then only after another event.
                self._write(blocked=False, since_ns=self._changed_ns, stack=self._stack())
                self._changed_ns = 0
        elif not self._waits and now - self._ran_ns >= wait_ns * 2 ** (self._periods // PERIODS):
            self._waits = True
            self._periods += 1
            self._write(blocked=True, since_ns=self._ran_ns, stack=self._stack())

    def _stack(self) -> list[Frame]:
        return frames.user_frames(tops().get(self._ident or 0))

    def _write(self, *, blocked: bool, since_ns: int, stack: list[Frame]) -> None:
        self._writer.emit(MainThreadSeen(blocked=blocked, since_ns=since_ns, stack=stack))
        self._events = self._writer.events
