"""Step marks and the calls of watched functions: counted on every call, on disk at once (capture.count).

Knows nothing of JAX.
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
from jaxscope.log import counts, reader
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev

__tracebackhide__ = to_be_read
NEVER = sys.maxsize


class Counter(Count):
    """Calls of one watched function in this recording. ``step``: watched as a step function. ``rings``: blocks may
    be asked, and raise, before a call; not where the count is made in a hook of ours.

    A warm call adds, stores and compares with ``due``: after a long computation every further word it
    reads is far away. All else waits for the call that is due. ``each``: sees the arguments of every call.
    """

    __slots__ = (
        "arguments", "each", "function", "look_at", "next", "rings", "step", "step_at", "tally", "tell_at",
    )  # fmt: skip

    def __init__(self, tally: StepTracker, function: str, step: bool = False) -> None:
        super().__init__(
            tally.writer, lambda count, cell: ev.Called(function=function, count=count, cell=cell)
        )
        self.tally = tally
        self.function = function
        self.each: Any = None
        self.arguments = Arguments(tally.writer, function) if tally.transfers else None
        self.step = step
        self.rings = True
        self.look_at = NEVER

    def restart(self) -> None:
        super().restart()
        # Calls at which the watched is looked at, a step ends that is to be looked at, steps are told.
        self.look_at, self.step_at, self.tell_at = 1, NEVER, 0
        self.due = self.next = 0

    def add(self) -> bool:
        """One more call. True: whoever watches it is to look when the call has returned.

        What ``watch`` makes does the same before it calls (capture.warm).
        """
        self.value = value = self.value + 1
        self.cells[self.index] = value
        return value >= self.due and self.came_due(value)

    def look_in(self, calls: int) -> None:
        """``add`` says True in so many calls."""
        self.look_at = self.value + calls
        self.set_due()

    def step_in(self, calls: int) -> None:
        """The step that ends when so many more calls have begun is one to look at."""
        self.step_at = self.value + calls
        self.set_due()

    def set_due(self) -> None:
        alarmed = self.tally.alarmed and self.rings
        self.next = 0 if alarmed else min(self.look_at, self.step_at, self.tell_at)
        self.due = self.next if self.each is None else 0

    def missed(self, given: tuple[Any, Any], numpy_leaves: int) -> None:
        """The call that was counted last, with the arguments and keywords ``given``, left the fast path."""
        if self.arguments is not None:
            self.arguments.missed(given, numpy_leaves, self.value)
            self.each = self.arguments.each
            self.set_due()

    def flush(self) -> None:
        super().flush()
        for count in list(self.arguments.counts.values()) if self.arguments is not None else ():
            count.flush()

    def came_due(self, value: int) -> bool:
        """Call ``value`` is one at which something is due; True as from ``add``."""
        if value < self.next:
            return False
        tally = self.tally
        if value == 1:
            tally.began(self)
        looks, stepped, tells = value >= self.look_at, value >= self.step_at, value >= self.tell_at
        if looks:
            self.look_at = value + 1  # where the call raises, nobody looks
        if stepped:
            self.step_at = NEVER
        if tells:
            self.tell_at = NEVER
        self.set_due()  # before what follows: another thread may make it due meanwhile
        if tally.waits:
            tally.first_called(self)
        if tally.fates.fresh:
            tally.look()
        if stepped:
            tally.call_began(self)
        if tells and tally.stepper is self:
            self.tell_at = value + tally.tell(value - 1)
            self.set_due()
        if tally.alarmed and self.rings:
            tally.ring()  # may raise: then the call does not happen
        return looks


class MainSteps:
    """The steps of the process that the user started, read where it counts them."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._log: Path | None = None

    def now(self) -> int | None:
        """Its step; None where its log is not found."""
        if self._log is None:
            self._log = reader.main_log(self._run)
        return counts.step_now(self._log) if self._log is not None else None


class StepTracker:
    """All counters of a recording, and the step we are in.

    Steps count from 1. With marks, step k is what runs until the k-th mark. Without, step k begins
    at the k-th call of the step function; before the first it is step 0.
    """

    def __init__(
        self,
        writer: Writer,
        fates: BufferLifetimes,
        look: Callable[[], None],
        step_ended: Callable[[], None],
        *,
        transfers: bool = False,
    ) -> None:
        self.writer = writer
        self.transfers = transfers  # is what calls bring to devices counted?
        self.fates = fates
        fates.noticed = self._all_due
        self.look = look
        self.step_ended = step_ended  # called at the ends of steps that ``look_after`` asks for
        self._counters: dict[str, Counter] = {}
        self.stepper: Counter | None = None  # whose calls are the steps
        self.waits = (
            True  # the next watched function that is called is the first: for the recording, or a block
        )
        self.blocks: list[RecordingScope] = []  # that are open now
        self.alarmed = False  # at the next mark or call of a watched function the blocks are told
        self._explicit = False
        self._marks = Count(writer, lambda index, cell: ev.Step(index=index, cell=cell))
        self._due = 0
        self._marks_due = NEVER
        # Told the number of a step that ended; says after how many more it wants to be told again.
        self.after_step: Callable[[int], int] | None = None
        self._tell_at = 0  # marks
        self.before = 0  # steps that the parent had counted when this process was forked
        self._main: MainSteps | None = None  # of a process that another one started

    def watch(self, function: str, step: bool) -> Counter:
        """The counter of ``function``. The first watched with ``step`` counts the steps, else the first called."""
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
        """A call of the step function ended ``step``: after how many more is the next to be told?"""
        if self.after_step is None or self._marks.value:
            return NEVER
        return self.after_step(step)

    def mark(self) -> None:
        """``jaxscope.step()``: the current step ends here."""
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
        if self.fates.fresh:
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
    def marks(self) -> int:
        """Step marks so far."""
        return self._marks.value

    @property
    def counters(self) -> list[Counter]:
        return list(self._counters.values())

    # -- blocks: parts of the recording with steps of their own ---------------------------------------

    def open(self, block: RecordingScope) -> None:
        """From now on ``block`` is told what leaves the fast path."""
        self.blocks.append(block)
        self.waits = True
        self._all_due()

    def close(self, block: RecordingScope) -> None:
        if block in self.blocks:
            self.blocks.remove(block)
        self._set_alarm(self.alarmed and any(b.alarm is not None for b in self.blocks))

    def first_called(self, counter: Counter) -> None:
        """``counter`` counted the first call of a watched function since somebody began to wait for one."""
        self.waits = False
        if self.stepper is None:
            self.stepper = counter
            self._count_in(counter)
        for block in self.blocks:
            if block.first is None:
                block.first = counter

    def brought(self, function: str, given: tuple[Any, Any], numpy_leaves: int) -> None:
        """A call of ``function`` left the fast path; its key has so many NumPy arguments."""
        counter = self._counters.get(function)
        if counter is not None:
            counter.missed(given, numpy_leaves)

    def missed(self, call: int) -> None:
        """Call ``call`` left the fast path: the blocks are told, and want to be asked when it is over."""
        if self.blocks:
            calls = {counter: counter.value for counter in self.counters}
            for block in self.blocks:
                block.missed(call, self._marks.value, calls)
            self._set_alarm(self.alarmed or any(b.alarm is not None for b in self.blocks))

    def ring(self) -> None:
        """Ask the blocks; one may raise what its owner asked for."""
        self._set_alarm(False)
        for block in list(self.blocks):
            if block.alarm is not None and not block.alarm():
                self._set_alarm(True)  # not here: ask again

    def _set_alarm(self, on: bool) -> None:
        if on != self.alarmed:
            self.alarmed = on
            for counter in self.counters:
                counter.set_due()

    def began(self, counter: Counter) -> None:
        """``counter`` counted its first call."""
        if counter is self.caller:
            self._count_in(counter)

    def _count_in(self, count: Count) -> None:
        """Other processes find the steps of this one there."""
        if count.cell is not None:
            self.writer.steps_in(count.cell, marks=count is self._marks)

    @property
    def current(self) -> int | None:
        """The step now; None where nothing counts steps."""
        if self._marks.value:
            return self.before + self._marks.value + 1
        return self.before + self.stepper.value if self.stepper is not None else None

    @property
    def main_step(self) -> int | None:
        """The step of the program's first process; None in that process itself."""
        return self._main.now() if self._main is not None else None

    def beside(self, run: RunDir) -> None:
        """This process was started by another one of ``run``."""
        self._main = MainSteps(run)

    @property
    def marked(self) -> bool:
        """Are steps counted by marks at their ends?"""
        return self._marks.value > 0

    def forked(self) -> None:
        """In a forked child: what the parent counted is the parent's, and the steps go on from there."""
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
        """Write to the log what grew; at misses and at the end."""
        for count in (*list(self._counters.values()), self._marks):
            count.flush()
