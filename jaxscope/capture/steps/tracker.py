"""Count step marks and the calls of watched functions, in memory-mapped files (capture.count).

Independent of JAX.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxscope.capture.calls.buffer_lifetime import BufferLifetimes
from jaxscope.capture.count import INTERVAL_NS, Count
from jaxscope.capture.steps.scope import RecordingScope
from jaxscope.capture.transfers.numpy_args import Arguments
from jaxscope.errors import to_be_read
from jaxscope.log import counts
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev

__tracebackhide__ = to_be_read
NEVER = sys.maxsize


class Counter(Count):
    """The calls of one watched function in this recording.

    A warm call only adds, stores and compares with ``due``, since more memory reads would miss the CPU's
    caches after a long computation. All other work is done at the call that is due.

    Attributes:
      step: whether it is watched as a step function.
      rings: whether the alarms of blocks may run before a call, and raise; False if a hook of jaxscope
        counts the calls.
      each: called with the arguments of every call, or None.
    """

    __slots__ = (
        "arguments",
        "each",
        "function",
        "look_at",
        "next",
        "rings",
        "step",
        "step_at",
        "tell_at",
        "tracker",
    )

    def __init__(self, tracker: StepTracker, function: str, step: bool = False) -> None:
        super().__init__(
            tracker.writer, lambda count, cell: ev.Called(function=function, count=count, cell=cell)
        )
        self.tracker = tracker
        self.function = function
        self.each: Any = None
        self.arguments = Arguments(tracker.writer, function) if tracker.transfers else None
        self.step = step
        self.rings = True
        self.look_at = NEVER

    def restart(self) -> None:
        super().restart()
        # Numbers of the calls at which to check the function's captured values, to end a step, to report
        # steps.
        self.look_at, self.step_at, self.tell_at = 1, NEVER, 0
        self.due = self.next = 0

    def add(self) -> bool:
        """Count one more call. Return True if the captured values have to be checked when it has returned.

        The wrapper that ``watch`` returns does the same before each call (capture.warm).
        """
        self.value = value = self.value + 1
        self.cells[self.index] = value
        return value >= self.due and self.came_due(value)

    def look_in(self, calls: int) -> None:
        """Make ``add`` return True after so many calls."""
        self.look_at = self.value + calls
        self.set_due()

    def step_in(self, calls: int) -> None:
        """Call ``step_ended`` for the step that ends when so many more calls have begun."""
        self.step_at = self.value + calls
        self.set_due()

    def set_due(self) -> None:
        alarmed = self.tracker.alarmed and self.rings
        self.next = 0 if alarmed else min(self.look_at, self.step_at, self.tell_at)
        self.due = self.next if self.each is None else 0

    def missed(self, given: tuple[Any, Any], numpy_leaves: int) -> None:
        """Note that the last counted call, with the arguments and keywords ``given``, left the fast path."""
        if self.arguments is not None:
            self.arguments.missed(given, numpy_leaves, self.value)
            self.each = self.arguments.each
            self.set_due()

    def flush(self) -> None:
        super().flush()
        for count in list(self.arguments.counts.values()) if self.arguments is not None else ():
            count.flush()

    def came_due(self, value: int) -> bool:
        """Do the work that is due at call ``value``. Return as ``add``."""
        if value < self.next:
            return False
        tracker = self.tracker
        if value == 1:
            tracker.began(self)
        looks, stepped, tells = value >= self.look_at, value >= self.step_at, value >= self.tell_at
        if looks:
            self.look_at = value + 1  # if the call raises, nothing is checked
        if stepped:
            self.step_at = NEVER
        if tells:
            self.tell_at = NEVER
        self.set_due()  # before what follows: another thread may make it due meanwhile
        if tracker.waits:
            tracker.first_called(self)
        if tracker.buffer_lifetimes.fresh:
            tracker.look()
        if stepped:
            tracker.call_began(self)
        if tells and tracker.stepper is self:
            self.tell_at = value + tracker.tell(value - 1)
            self.set_due()
        if tracker.alarmed and self.rings:
            tracker.ring()  # may raise: then the call does not happen
        return looks


class MainSteps:
    """The steps of the process that the user started, read from the file in which it counts them."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._log: Path | None = None

    def now(self) -> int | None:
        """Return its current step; None if its log is missing."""
        if self._log is None:
            from jaxscope.log import reader  # late: 10 ms, and only a child process reads

            self._log = reader.main_log(self._run)
        return counts.step_now(self._log) if self._log is not None else None


class StepTracker:
    """All counters of a recording, and the current step.

    Steps count from 1. With marks, step k is what runs until the k-th mark. Without, step k begins
    at the k-th call of the step function; before the first it is step 0.
    """

    def __init__(
        self,
        writer: Writer,
        buffer_lifetimes: BufferLifetimes,
        look: Callable[[], None],
        step_ended: Callable[[], None],
        *,
        transfers: bool = False,
    ) -> None:
        self.writer = writer
        self.transfers = transfers  # whether NumPy arguments copied to devices are counted
        self.buffer_lifetimes = buffer_lifetimes
        buffer_lifetimes.noticed = self._all_due
        self.look = look
        self.step_ended = step_ended  # called at the ends of steps that ``look_after`` asks for
        self._counters: dict[str, Counter] = {}
        self.stepper: Counter | None = None  # whose calls are the steps
        self.waits = (
            True  # the next watched function that is called is the first: for the recording, or a block
        )
        self.blocks: list[RecordingScope] = []  # the open ones
        self.alarmed = False  # at the next mark or call of a watched function, the alarms of the blocks run
        self._explicit = False
        self._marks = Count(writer, lambda index, cell: ev.Step(index=index, cell=cell))
        self._due = 0
        self._marks_due = NEVER
        # Called with the number of a step that ended; returns after how many more steps to call it again.
        self.after_step: Callable[[int], int] | None = None
        self._tell_at = 0  # marks
        self.before = 0  # steps that the parent had counted when this process was forked
        self._main: MainSteps | None = None  # of a process that another one started

    def watch(self, function: str, step: bool) -> Counter:
        """Return the counter of ``function``. The first with ``step`` counts steps, else the first called."""
        counter = self._counters.get(function)
        if counter is None:
            counter = self._counters[function] = Counter(self, function, step)
            counter.set_due()
            self.writer.emit(ev.Watched(function=function, step=step))
        elif step and not counter.step:
            self.writer.emit(ev.Watched(function=function, step=True))
        counter.step = counter.step or step
        if step and not self._explicit:
            self._explicit = True
            self.stepper = counter
            counter.tell_at = counter.due = counter.next = 0
        return counter

    def _all_due(self) -> None:
        for counter in list(self._counters.values()):
            counter.due = counter.next = 0

    def tell(self, step: int) -> int:
        """Report the end of ``step`` and return after how many more steps to report again."""
        if self.after_step is None or self._marks.value:
            return NEVER
        return self.after_step(step)

    def mark(self) -> None:
        """End the current step (``jaxscope.step()``)."""
        self._marks.add()
        if self._marks.value == 1:  # what counted so far were calls
            self._marks_due = min(self._marks_due, 1)
            self._count_in(self._marks)
        now = time.monotonic_ns()
        if now >= self._due or self._marks.value <= 10:
            self._due = now + INTERVAL_NS
            self._marks.flush()
        if self._marks.value >= self._marks_due:
            self.step_ended()
        if self.buffer_lifetimes.fresh:
            self.look()
        if self.after_step is not None and self._marks.value >= self._tell_at:
            self._tell_at = self._marks.value + self.after_step(self._marks.value)
        if self.alarmed:
            self.ring()

    def look_after(self, steps: int) -> None:
        """Call ``step_ended`` when ``steps`` more steps have ended."""
        self._marks_due = self._marks.value + steps
        if self.stepper is not None:
            self.stepper.step_in(steps)

    def call_began(self, counter: Counter) -> None:
        """End the previous step, if ``counter`` counts the steps."""
        if counter is self.caller:
            self.step_ended()

    @property
    def caller(self) -> Counter | None:
        """The counter whose calls are the steps; None if marks count them."""
        return self.stepper if not self._marks.value else None

    @property
    def ended(self) -> int:
        """Steps that ended so far."""
        now = self.current
        return now - 1 if now else 0

    @property
    def marks(self) -> int:
        """Step marks so far."""
        return self._marks.value

    @property
    def counters(self) -> list[Counter]:
        return list(self._counters.values())

    # -- blocks: parts of the recording with steps of their own ------------------------------------

    def open(self, block: RecordingScope) -> None:
        """Report calls that leave the fast path to ``block`` from now on."""
        self.blocks.append(block)
        self.waits = True
        self._all_due()

    def close(self, block: RecordingScope) -> None:
        if block in self.blocks:
            self.blocks.remove(block)
        self._set_alarm(self.alarmed and any(b.alarm is not None for b in self.blocks))

    def first_called(self, counter: Counter) -> None:
        """Note ``counter`` as the first one called in the recording and in the open blocks."""
        self.waits = False
        if self.stepper is None:
            self.stepper = counter
            self._count_in(counter)
        for block in self.blocks:
            if block.first is None:
                block.first = counter

    def brought(self, function: str, given: tuple[Any, Any], numpy_leaves: int) -> None:
        """Note that a call of ``function`` with ``numpy_leaves`` NumPy arrays left the fast path."""
        counter = self._counters.get(function)
        if counter is not None:
            counter.missed(given, numpy_leaves)

    def missed(self, call: int) -> None:
        """Report that call ``call`` left the fast path to the blocks, and set their alarms."""
        if self.blocks:
            calls = {counter: counter.value for counter in self.counters}
            for block in self.blocks:
                block.missed(call, self._marks.value, calls)
            self._set_alarm(self.alarmed or any(b.alarm is not None for b in self.blocks))

    def ring(self) -> None:
        """Run the alarms of the blocks; an alarm may raise RecompileError."""
        self._set_alarm(False)
        for block in list(self.blocks):
            if block.alarm is not None and not block.alarm():
                self._set_alarm(True)  # it could not check here: run it again

    def _set_alarm(self, on: bool) -> None:
        if on != self.alarmed:
            self.alarmed = on
            for counter in self.counters:
                counter.set_due()

    def began(self, counter: Counter) -> None:
        """Add ``counter``, which counted its first call, if it is the one that counts calls."""
        if counter is self.caller:
            self._count_in(counter)

    def _count_in(self, count: Count) -> None:
        """Publish which cell counts the steps, for other processes."""
        if count.cell is not None:
            self.writer.steps_in(count.cell, marks=count is self._marks)

    @property
    def current(self) -> int | None:
        """The current step; None if no steps are counted."""
        if self._marks.value:
            return self.before + self._marks.value + 1
        return self.before + self.stepper.value if self.stepper is not None else None

    @property
    def main_step(self) -> int | None:
        """The step of the program's first process; None in that process itself."""
        return self._main.now() if self._main is not None else None

    def beside(self, run: RunDir) -> None:
        """Note that another process of ``run`` started this one."""
        self._main = MainSteps(run)

    @property
    def marked(self) -> bool:
        """Return whether steps are counted by marks at their ends."""
        return self._marks.value > 0

    def forked(self) -> None:
        """Reset the counts in a forked child; the step numbers continue from the parent's."""
        self.before += self._marks.value or (self.stepper.value if self.stepper is not None else 0)
        self._tell_at = 0
        for count in (*self._counters.values(), self._marks):
            count.restart()
        for counter in self._counters.values():
            for brought in counter.arguments.counts.values() if counter.arguments is not None else ():
                brought.restart()
        self.blocks = []
        self._set_alarm(False)

    def flush(self) -> None:
        """Write changed counts to the log. Called at misses and at the end."""
        for count in (*list(self._counters.values()), self._marks):
            count.flush()
