"""Record what the main thread of a process does while the log gets no events, in a job of several processes.
The log then shows which ranks (processes) wait, and where.

At least every two seconds, a thread reads Linux's counters of context switches of the main thread, which show
whether the main thread has run since the last reading. The thread writes the event ``MainThreadSeen`` when
the main thread has waited for a while, when it runs again, and when it runs for a while without any event. A
job that makes progress has few such events. There is no such thread in a program of one process, or on a
system without these counters.
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

LOOK_S = 2.0  # the longest time between two readings of the counters
LOOKS = 5  # readings without a change, before it is recorded that the main thread waits or has no events
PERIODS = 50  # after each PERIODS recorded waits, a wait must be twice as long to be recorded
COUNTERS = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


class MainThread:
    """Observes whether the main thread of this process waits, from ``start`` to ``stop``.

    Args:
      patience_s: after how many seconds without progress jaxscope names the ranks (processes of the job) that
        wait. The main thread is observed more often if this is short.
    """

    def __init__(self, writer: Writer, patience_s: float) -> None:
        self._writer = writer
        self._look_s = min(LOOK_S, patience_s / (2 * LOOKS))
        self._ident = threading.main_thread().ident
        self._status = Path(f"/proc/self/task/{threading.main_thread().native_id}/status")
        self._stopped = _thread.allocate_lock()  # the thread ends when it is released
        self._stopped.acquire()
        self._switches: tuple[str, ...] | None = None
        self._ran_ns = 0  # when a reading last showed that the main thread had run
        self._waits = False  # whether the latest event is that it waits
        self._periods = 0  # waits recorded so far
        self._events = 0  # number of events in the log when it last changed
        self._changed_ns = 0  # when the log last changed

    def start(self) -> None:
        """Start the thread that observes the main thread.

        Raises:
          OSError: this system does not have Linux's counters of context switches, which the thread reads.
        """
        self._ran_ns = self._changed_ns = time.time_ns()
        self._switches = self._read()
        shield.start_thread(self._run)

    def stop(self) -> None:
        """End the thread that observes the main thread, without waiting for its end."""
        if self._stopped.locked():
            self._stopped.release()

    def _run(self) -> None:
        """Look at the main thread at intervals, until ``stop`` is called."""
        while not self._stopped.acquire(timeout=self._look_s):
            shield.attempt("main_thread", self._look, time.time_ns())

    def _read(self) -> tuple[str, ...]:
        """Return the two lines of ``/proc/self/task/.../status`` with the numbers of the main thread's
        context switches. They change whenever the main thread runs."""
        lines = self._status.read_text().splitlines()
        return tuple(line for line in lines if line.startswith(COUNTERS))

    def _look(self, now: int) -> None:
        """Read the counters of context switches. Log an event if the main thread has begun to wait, runs
        again after a wait, or runs without other events in the log. ``now`` is the time in ns since 1970."""
        switches, wait_ns = self._read(), self._look_s * LOOKS * 1e9
        if self._events != self._writer.events:
            self._events, self._changed_ns = self._writer.events, now
        if switches != self._switches:
            self._switches, self._ran_ns = switches, now
            if self._waits:
                self._waits = False
                self._write(blocked=False, since_ns=now, stack=[])
            elif self._changed_ns and now - self._changed_ns >= wait_ns:
                # The main thread runs, but no events are written. Record this once, and again only after
                # another event.
                self._write(blocked=False, since_ns=self._changed_ns, stack=self._stack())
                self._changed_ns = 0
        elif not self._waits and now - self._ran_ns >= wait_ns * 2 ** (self._periods // PERIODS):
            self._waits = True
            self._periods += 1
            self._write(blocked=True, since_ns=self._ran_ns, stack=self._stack())

    def _stack(self) -> list[Frame]:
        """Return the user's lines that the main thread is executing, innermost first."""
        return frames.user_frames(tops().get(self._ident or 0))

    def _write(self, *, blocked: bool, since_ns: int, stack: list[Frame]) -> None:
        """Log the event ``MainThreadSeen``: the main thread waits (``blocked``) or runs.

        Args:
          since_ns: when the wait or the run began, in ns since 1970. If the main thread runs without events:
            when the log last changed.
          stack: the user's lines that the main thread is executing; empty if it runs again after a wait.
        """
        self._writer.emit(MainThreadSeen(blocked=blocked, since_ns=since_ns, stack=stack))
        self._events = self._writer.events
