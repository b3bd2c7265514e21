"""Step marks and the calls of watched functions: counted on every call, on disk at once (capture.count).

Knows nothing of JAX.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from jaxscope.capture.count import INTERVAL_NS, Count
from jaxscope.capture.fates import Fates
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev

NEVER = sys.maxsize


class Counter(Count):
    """Calls of one watched function in this recording.

    A warm call adds, stores and compares with ``due``: after a long computation every further word it
    reads is far away. All else waits for the call that is due.
    """

    __slots__ = ("due", "function", "look_at", "step_at", "tally", "tell_at")

    def __init__(self, tally: Tally, function: str) -> None:
        super().__init__(
            tally.writer, lambda count, cell: ev.Called(function=function, count=count, cell=cell)
        )
        self.tally = tally
        self.function = function
        self.look_at = NEVER

    def restart(self) -> None:
        super().restart()
        # Calls at which the watched is looked at, a step ends that is to be looked at, steps are told.
        self.look_at, self.step_at, self.tell_at = 1, NEVER, 0
        self.due = 0

    def add(self) -> bool:
        """One more call; about 0.2 us. True: whoever watches it is to look when the call has returned."""
        self.value = value = self.value + 1
        self.cells[self.index] = value
        return value >= self.due and self._came_due(value)

    def look_in(self, calls: int) -> None:
        """``add`` says True in so many calls."""
        self.look_at = self.value + calls
        self._settle()

    def step_in(self, calls: int) -> None:
        """The step that ends when so many more calls have begun is one to look at."""
        self.step_at = self.value + calls
        self._settle()

    def _settle(self) -> None:
        self.due = min(self.look_at, self.step_at, self.tell_at)

    def _came_due(self, value: int) -> bool:
        tally = self.tally
        looks, stepped, tells = value >= self.look_at, value >= self.step_at, value >= self.tell_at
        if looks:
            self.look_at = value + 1  # where the call raises, nobody looks
        if stepped:
            self.step_at = NEVER
        if tells:
            self.tell_at = NEVER
        self._settle()  # before what follows: another thread may make it due meanwhile
        if tally.stepper is None:
            tally.stepper = self
        if tally.fates.fresh:
            tally.look()
        if stepped:
            tally.call_began(self)
        if tells and tally.stepper is self:
            self.tell_at = value + tally.tell(value - 1)
            self._settle()
        return looks


class Tally:
    """All counters of a recording, and the step we are in.

    Steps count from 1. With marks, step k is what runs until the k-th mark. Without, step k begins
    at the k-th call of the step function; before the first it is step 0.
    """

    def __init__(
        self, writer: Writer, fates: Fates, look: Callable[[], None], step_ended: Callable[[], None]
    ) -> None:
        self.writer = writer
        self.fates = fates
        fates.noticed = self._all_due
        self.look = look
        self.step_ended = step_ended  # called at the ends of steps that ``look_after`` asks for
        self._counters: dict[str, Counter] = {}
        self.stepper: Counter | None = None  # whose calls are the steps
        self._explicit = False
        self._marks = Count(writer, lambda index, cell: ev.Step(index=index, cell=cell))
        self._due = 0
        self._marks_due = NEVER
        # Told the number of a step that ended; says after how many more it wants to be told again.
        self.after_step: Callable[[int], int] | None = None
        self._tell_at = 0  # marks

    def watch(self, function: str, step: bool) -> Counter:
        """The counter of ``function``. The first watched with ``step`` counts the steps, else the first called."""
        counter = self._counters.get(function)
        if counter is None:
            counter = self._counters[function] = Counter(self, function)
            self.writer.emit(ev.Watched(function=function, step=step))
        if step and not self._explicit:
            self._explicit = True
            self.stepper = counter
            counter.tell_at = counter.due = 0
        return counter

    def _all_due(self) -> None:
        for counter in list(self._counters.values()):
            counter.due = 0

    def tell(self, step: int) -> int:
        """A call of the step function ended ``step``: after how many more is the next to be told?"""
        if self.after_step is None or self._marks.value:
            return NEVER
        return self.after_step(step)

    def mark(self) -> None:
        """``jaxscope.step()``: the current step ends here."""
        self._marks.add()
        if self._marks.value == 1:  # what counted so far were calls
            self._marks_due = min(self._marks_due, 1)
        now = time.monotonic_ns()
        if now >= self._due or self._marks.value <= 10:
            self._due = now + INTERVAL_NS
            self._marks.flush()
        if self._marks.value >= self._marks_due:
            self.step_ended()
        if self.fates.fresh:
            self.look()
        if self.after_step is not None and self._marks.value >= self._tell_at:
            self._tell_at = self._marks.value + self.after_step(self._marks.value)

    def look_after(self, steps: int) -> None:
        """Call ``step_ended`` when ``steps`` more steps have ended."""
        self._marks_due = self._marks.value + steps
        if self.stepper is not None:
            self.stepper.step_in(steps)

    def call_began(self, counter: Counter) -> None:
        """With a call of the step function that is due, the step before it ends."""
        if counter is self.caller:
            self.step_ended()

    @property
    def caller(self) -> Counter | None:
        """Whose calls are the steps; None where marks are."""
        return self.stepper if not self._marks.value else None

    @property
    def ended(self) -> int:
        """Steps that ended so far."""
        now = self.current
        return now - 1 if now else 0

    @property
    def current(self) -> int | None:
        """The step now; None where nothing counts steps."""
        if self._marks.value:
            return self._marks.value + 1
        return self.stepper.value if self.stepper is not None else None

    @property
    def marked(self) -> bool:
        """Are steps counted by marks at their ends?"""
        return self._marks.value > 0

    def forked(self) -> None:
        """In a forked child: what the parent counted is the parent's."""
        self._tell_at = 0
        for count in (*self._counters.values(), self._marks):
            count.restart()

    def flush(self) -> None:
        """Write to the log what grew; at misses and at the end."""
        for count in (*list(self._counters.values()), self._marks):
            count.flush()
