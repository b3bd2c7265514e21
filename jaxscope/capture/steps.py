"""Step marks and the calls of watched functions: counted on every call, written rarely.

A count is one addition; it reaches the log at misses, at most ten times a second, and at the end.
Knows nothing of JAX.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from jaxscope.capture.fates import Fates
from jaxscope.schema import events as ev

INTERVAL_NS = 100_000_000


class Counter:
    """Calls of one watched function in this recording."""

    __slots__ = ("count", "due", "function", "tally", "written")

    def __init__(self, tally: Tally, function: str) -> None:
        self.tally = tally
        self.function = function
        self.count = 0
        self.written = 0
        self.due = 0

    def add(self) -> None:
        """One more call; about 0.3 us."""
        self.count += 1
        if self.tally.stepper is None:
            self.tally.stepper = self
        if self.tally.fates.fresh:
            self.tally.look()
        now = time.monotonic_ns()
        if now >= self.due:
            self.due = now + INTERVAL_NS
            self.tally.write(self)


class Tally:
    """All counters of a recording, and the step we are in.

    Steps count from 1. With marks, step k is what runs until the k-th mark. Without, step k begins
    at the k-th call of the step function; before the first it is step 0.
    """

    def __init__(self, emit: Callable[[ev.Event], None], fates: Fates, look: Callable[[], None]) -> None:
        self._emit = emit
        self.fates = fates
        self.look = look
        self._counters: dict[str, Counter] = {}
        self.stepper: Counter | None = None  # whose calls are the steps
        self._explicit = False
        self.marks = 0
        self._marks_written = 0
        self._due = 0

    def watch(self, function: str, step: bool) -> Counter:
        """The counter of ``function``. The first watched with ``step`` counts the steps, else the first called."""
        counter = self._counters.get(function)
        if counter is None:
            counter = self._counters[function] = Counter(self, function)
            self._emit(ev.Watched(function=function, step=step))
        if step and not self._explicit:
            self._explicit = True
            self.stepper = counter
        return counter

    def mark(self) -> None:
        """``jaxscope.step()``: the current step ends here."""
        self.marks += 1
        now = time.monotonic_ns()
        if now >= self._due or self.marks <= 10:
            self._due = now + INTERVAL_NS
            self._write_mark()
        if self.fates.fresh:
            self.look()

    @property
    def current(self) -> int | None:
        """The step now; None where nothing counts steps."""
        if self.marks:
            return self.marks + 1
        return self.stepper.count if self.stepper is not None else None

    def write(self, counter: Counter) -> None:
        if counter.count != counter.written:
            counter.written = counter.count
            self._emit(ev.Called(function=counter.function, count=counter.count))

    def forked(self) -> None:
        """In a forked child: what the parent counted is the parent's."""
        for counter in self._counters.values():
            counter.count = counter.written = 0
        self.marks = self._marks_written = 0

    def flush(self) -> None:
        """Write what is pending; at misses and at the end."""
        for counter in list(self._counters.values()):
            self.write(counter)
        if self.marks != self._marks_written:
            self._write_mark()

    def _write_mark(self) -> None:
        self._marks_written = self.marks
        self._emit(ev.Step(index=self.marks))
