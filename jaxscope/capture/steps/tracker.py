"""Count the training steps of a recording: the calls of ``jaxscope.step()`` (marks), and the calls of
functions wrapped by ``jaxscope.watch``. The counts are stored in files that are mapped into memory
(``capture.count``).

This module does not use JAX.
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
    """Counts the calls of one function wrapped by ``jaxscope.watch``. Work other than counting, such as
    ending a step, is done only in calls whose number has reached ``due``.

    Args:
      tracker: the StepTracker, which counts the training steps.
      function: the id of the function.

    Attributes:
      step: whether each call is a training step (``watch(step=True)``).
      rings: whether the checks of blocks such as ``no_recompiles`` may run before a call, and raise an
        exception.
      each: is called with the positional and the keyword arguments of each finished call; None: nothing is
        called.
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
        self.rings = True  # not if a hook counts the calls: its exceptions do not reach the program
        self.look_at = NEVER

    def restart(self) -> None:
        """Set the count to 0, when the recording starts and in a forked child. In the child, the values that
        the function captures are checked after the next call."""
        super().restart()
        # The numbers of the calls at which to check the values that the function captures, to end a step, and
        # to report that steps have ended.
        self.look_at, self.step_at, self.tell_at = 1, NEVER, 0
        self.due = self.next = 0

    def add(self) -> bool:
        """Count one more call. Return True if jaxscope has to check, after this call, whether values that the
        function read from outside during its trace have changed.

        The wrapper of ``jaxscope.watch`` does not call this method but does the same itself
        (``capture.warm``).
        """
        self.value = value = self.value + 1
        self.cells[self.index] = value
        return value >= self.due and self.came_due(value)

    def look_in(self, calls: int) -> None:
        """Let ``add`` return True from the ``calls``-th call after now until this method is called again.
        After such a call, jaxscope checks whether values that the function read from outside during its trace
        have changed."""
        self.look_at = self.value + calls
        self.set_due()

    def step_in(self, calls: int) -> None:
        """End a training step at the beginning of the ``calls``-th call of the function from now on: the
        tracker's ``step_ended`` is called then, if the calls of the function are the steps."""
        self.step_at = self.value + calls
        self.set_due()

    def set_due(self) -> None:
        """Set ``due``: the number of the call from which on calls need more than counting (0: all calls). The
        reasons are a check of the values that the function read from outside, the end of a step, a check for
        a block such as ``no_recompiles``, or a call of ``each``."""
        alarmed = self.tracker.alarmed and self.rings
        self.next = 0 if alarmed else min(self.look_at, self.step_at, self.tell_at)
        # Most calls only compare the count with this. Reading more memory would miss the CPU's caches after a
        # long computation.
        self.due = self.next if self.each is None else 0

    def missed(self, arguments: tuple[Any, Any], numpy_leaves: int) -> None:
        """Record the bytes of the NumPy arguments of the latest call, which missed the fast path (the C++
        cache). ``arguments`` is (its positional arguments, its keyword arguments), and ``numpy_leaves`` the
        number of NumPy arrays in its cache key. Do nothing if the recording does not count copies."""
        if self.arguments is not None:
            self.arguments.missed(arguments, numpy_leaves, self.value)
            self.each = self.arguments.each
            self.set_due()

    def flush(self) -> None:
        """Write the counts that have changed to the log: of calls, and of calls by the bytes of their NumPy
        arguments."""
        super().flush()
        for count in list(self.arguments.counts.values()) if self.arguments is not None else ():
            count.flush()

    def came_due(self, value: int) -> bool:
        """Do what is due before the call number ``value`` besides counting: end a training step, run the
        checks of blocks such as ``no_recompiles``, check the arguments of earlier calls. Return True if the
        values that the function read from outside have to be checked after the call.

        Raises:
          RecompileError: a check of a block failed; the call does not happen.
        """
        if value < self.next:
            return False
        tracker = self.tracker
        if value == 1:
            tracker.began(self)
        looks, stepped, tells = value >= self.look_at, value >= self.step_at, value >= self.tell_at
        if looks:
            self.look_at = value + 1  # if this call raises, the check is made after the next one
        if stepped:
            self.step_at = NEVER
        if tells:
            self.tell_at = NEVER
        self.set_due()  # first, because another thread may call it during what follows
        if tracker.awaits_first_call:
            tracker.first_called(self)
        if tracker.buffer_lifetimes.fresh:
            tracker.look()
        if stepped:
            tracker.call_began(self)
        if tells and tracker.stepper is self:
            self.tell_at = value + tracker.call_after_step(value - 1)
            self.set_due()
        if tracker.alarmed and self.rings:
            tracker.ring()  # may raise: then the call does not happen
        return looks


class MainSteps:
    """Reads the current training step of the program's first process, which the user started, from the file
    in which that process stores it. ``run`` is the directory to which that process records."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._log: Path | None = None

    def now(self) -> int | None:
        """Return the current step of the process that the user started; 0 before its first step, None if that
        process has no log."""
        if self._log is None:
            from jaxscope.log import reader  # takes 10 ms, and only child processes need it

            self._log = reader.main_log(self._run)
        return counts.step_now(self._log) if self._log is not None else None


class StepTracker:
    """The counters of all watched functions (``jaxscope.watch``) of a recording, and the number of the
    current training step.

    Steps count from 1. If the program calls ``jaxscope.step()`` (a mark), step k ends at the k-th mark. If it
    does not, step k begins at the k-th call of the step function; step 0 is what runs before the first call.

    Args:
      buffer_lifetimes: finds out what became of the array arguments of calls.
      look: checks the array arguments of the calls in ``buffer_lifetimes``.
      step_ended: is called at the ends of the steps that ``look_after`` selects.
      transfers: whether NumPy arguments that are copied to devices are counted.

    Attributes:
      stepper: the counter whose calls are the steps, unless marks are; None: not known yet.
      waits: whether ``first_called`` is to be called at the next call of a watched function. True while no
        watched function has been called in the recording or since a block was opened.
      blocks: the open blocks, such as ``with no_recompiles()``.
      alarmed: whether the blocks' alarms (checks that may raise RecompileError) run at the next mark or call
        of a watched function.
      after_step: is called with the number of a step that has ended, and returns after how many more steps it
        is to be called again; None: nothing is called.
      before: the number of steps that the parent had counted when this process was forked; else 0.
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
        self.transfers = transfers
        self.buffer_lifetimes = buffer_lifetimes
        buffer_lifetimes.noticed = self._all_due
        self.look = look
        self.step_ended = step_ended
        self._counters: dict[str, Counter] = {}
        self.stepper: Counter | None = None
        self.awaits_first_call = True
        self.blocks: list[RecordingScope] = []
        self.alarmed = False
        self._explicit = False  # whether a function is watched as a step function
        self._marks = Count(writer, lambda index, cell: ev.Step(index=index, cell=cell))
        self._due = 0  # when the marks are written to the log again, in ns
        self._marks_due = NEVER  # the mark at which step_ended is called
        self.after_step: Callable[[int], int] | None = None
        self._tell_at = 0  # the mark at which after_step is called
        self.before = 0
        self._main: MainSteps | None = None  # if another process of the run started this one

    def watch(self, function: str, step: bool) -> Counter:
        """Return the counter of the calls of a function wrapped by ``jaxscope.watch``. ``function`` is the id
        of the function, ``step`` whether its calls are training steps. If the function is watched already,
        its counter is returned again.

        The training steps are the calls of the first function for which ``step`` is True. If there is none,
        they are the calls of the watched function that is called first.
        """
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
        """Let the counter of each watched function check, at the next call of the function, whether there is
        more to do than counting: a check of the arguments of earlier calls, or the first call in a block such
        as ``no_recompiles``."""
        for counter in list(self._counters.values()):
            counter.due = counter.next = 0

    def call_after_step(self, step: int) -> int:
        """Call ``after_step`` with ``step``, the number of a step that a new call of the step function has
        ended. Return after how many more steps this method is to be called again. If calls of
        ``jaxscope.step()`` end the steps, or ``after_step`` is None, call nothing and return NEVER."""
        if self.after_step is None or self._marks.value:
            return NEVER
        return self.after_step(step)

    def mark(self) -> None:
        """End the current step, because the program called ``jaxscope.step()``. This may raise
        RecompileError, from a check of a block such as ``no_recompiles``."""
        self._marks.add()
        if self._marks.value == 1:  # until now, calls of a function counted the steps
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
        """Let ``step_ended``, a function given to the constructor, be called at the end of the ``steps``-th
        training step from now on."""
        self._marks_due = self._marks.value + steps
        if self.stepper is not None:
            self.stepper.step_in(steps)

    def call_began(self, counter: Counter) -> None:
        """Call ``step_ended`` if the calls of ``counter`` are the steps: a new call ends the step before
        it."""
        if counter is self.caller:
            self.step_ended()

    @property
    def caller(self) -> Counter | None:
        """The counter whose calls are the steps. None if calls of ``jaxscope.step()`` end the steps, or if no
        counter is known yet."""
        return self.stepper if not self._marks.value else None

    @property
    def ended(self) -> int:
        """The number of training steps that have ended so far; 0 if no steps are counted."""
        now = self.current
        return now - 1 if now else 0

    @property
    def marks(self) -> int:
        """The number of calls of ``jaxscope.step()`` so far."""
        return self._marks.value

    @property
    def counters(self) -> list[Counter]:
        """The counters of all functions wrapped by ``jaxscope.watch``."""
        return list(self._counters.values())

    # -- blocks: parts of the recording with steps of their own ------------------------------------

    def open(self, block: RecordingScope) -> None:
        """From now on, report calls that miss the fast path (the C++ cache) to ``block``, such as ``with
        no_recompiles()``."""
        self.blocks.append(block)
        self.awaits_first_call = True
        self._all_due()

    def close(self, block: RecordingScope) -> None:
        """Stop reporting calls that miss the fast path (the C++ cache) to ``block``, such as ``with
        no_recompiles()``. Do nothing if it is not open."""
        if block in self.blocks:
            self.blocks.remove(block)
        self._set_alarm(self.alarmed and any(b.alarm is not None for b in self.blocks))

    def first_called(self, counter: Counter) -> None:
        """Handle the first call of a watched function (``jaxscope.watch``) in the recording or in an open
        block. ``counter`` counts the calls of this function.

        If it is not known yet which calls are the training steps, the calls of this function are. ``counter``
        becomes ``first`` of each open block that has none.
        """
        self.awaits_first_call = False
        if self.stepper is None:
            self.stepper = counter
            self._count_in(counter)
        for block in self.blocks:
            if block.first is None:
                block.first = counter

    def numpy_arguments(self, function: str, arguments: tuple[Any, Any], numpy_leaves: int) -> None:
        """Record the bytes of the NumPy arguments of a call that missed the fast path (the C++ cache). Do
        nothing if the called function is not watched (``jaxscope.watch``).

        Args:
          function: the id of the called function.
          arguments: (positional arguments, keyword arguments) of the call.
          numpy_leaves: the number of NumPy arrays in the cache key of the call.
        """
        counter = self._counters.get(function)
        if counter is not None:
            counter.missed(arguments, numpy_leaves)

    def missed(self, call: int) -> None:
        """Report to the open blocks (such as ``with no_recompiles()``) that the call number ``call`` missed
        the fast path (the C++ cache). If a block has an alarm (a check of such calls), all alarms run at the
        next end of a step or call of a watched function."""
        if self.blocks:
            calls = {counter: counter.value for counter in self.counters}
            for block in self.blocks:
                block.missed(call, self._marks.value, calls)
            self._set_alarm(self.alarmed or any(b.alarm is not None for b in self.blocks))

    def ring(self) -> None:
        """Run the alarms of the open blocks such as ``with no_recompiles()``. An alarm checks the calls that
        missed the fast path (the C++ cache), and may raise RecompileError. An alarm that could not check now
        runs again at the next end of a step or call of a watched function."""
        self._set_alarm(False)
        for block in list(self.blocks):
            if block.alarm is not None and not block.alarm():
                self._set_alarm(True)  # the alarm could not check here: run it again at the next occasion

    def _set_alarm(self, on: bool) -> None:
        """Set whether the alarms of the open blocks run at the next end of a step or call of a watched
        function. An alarm is the check of the calls in a block such as ``with no_recompiles()``."""
        if on != self.alarmed:
            self.alarmed = on
            for counter in self.counters:
                counter.set_due()

    def began(self, counter: Counter) -> None:
        """Handle the first call of the function that ``counter`` counts. If its calls are the training steps,
        other processes read the number of the current step from this counter from now on."""
        if counter is self.caller:
            self._count_in(counter)

    def _count_in(self, count: Count) -> None:
        """Let other processes read the number of the current training step from ``count``: store where in the
        memory-mapped file this count is. Do nothing if the count is not in the file."""
        if count.cell is not None:
            self.writer.steps_in(count.cell, marks=count is self._marks)

    @property
    def current(self) -> int | None:
        """The number of the current training step; None if no steps are counted. If calls of a function are
        the steps, it is 0 before the first call."""
        if self._marks.value:
            return self.before + self._marks.value + 1
        return self.before + self.stepper.value if self.stepper is not None else None

    @property
    def main_step(self) -> int | None:
        """The current training step of the process that the user started; None in that process itself, or if
        the step is unknown."""
        return self._main.now() if self._main is not None else None

    def beside(self, run: RunDir) -> None:
        """Record that this process was started by another process of the same recording. From now on,
        ``main_step`` is read from the directory ``run``, to which both processes record."""
        self._main = MainSteps(run)

    @property
    def marked(self) -> bool:
        """Whether steps end at calls of ``jaxscope.step()``, and not at calls of a function."""
        return self._marks.value > 0

    def forked(self) -> None:
        """Start all counts at 0 in a forked child, where no block is open. The step numbers continue from the
        parent's."""
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
        """Write the counts that have changed to the log."""
        for count in (*list(self._counters.values()), self._marks):
            count.flush()
