"""Decide when to take snapshots of the live arrays, so that they cost at most the part SHARE of the wall
time. The cost of a snapshot is its CPU time, so that snapshots do not become rarer on a busy machine.

In a program with training steps, snapshots are taken at the ends of the first steps, then of steps whose
number doubles each time. In between, one is taken when the number of arrays has grown. In a program without
steps, snapshots are taken at compilations and transfers, or while the main thread runs Python code of the
user (``capture/line_times.py``), at growing intervals: after a snapshot at 10 s, the next one is taken at
APART times 10 s or later.

Two snapshots are always taken: one that the user requests, and the last one, at the end of the recording. The
reason of the last one is EXHAUSTED if memory ran out. Because these snapshots also cost time, the next ones
are taken later.
"""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from jaxscope.capture import frames, last_exception, shield
from jaxscope.capture.live_arrays.look import Look, UnnamedKey, unnamed_key
from jaxscope.schema import libraries
from jaxscope.schema.events import ArraysSeen

SHARE = 0.01
COUNTING_SHARE = 0.1  # the part of SHARE for counting the arrays without taking a snapshot
FIRST_STEPS = 4
FIRST_S = 1.0  # seconds before the first snapshot at a transfer
FIRST_COST_S = 0.05  # what the first snapshot at a step may cost, however short the program has run
PAUSE_S = 10.0  # seconds until ``at_sample`` tests again whether steps are counted
SHORTEST_S = 0.2  # between two calls of ``at_sample``
APART = 1.5
GROWN = 1.25  # times as many arrays as in the last snapshot cause a new one
# If in so many snapshots in a row there are more arrays to which no variable leads, the objects that refer to
# these arrays are searched.
RISES = 3
NEVER_AGAIN = -1_000_000  # stored as the number of rises after this search was made
REFERRERS_S = 0.1
MAX_STEPS = 1000  # the most steps until the clock is read again, because steps may become longer
FIXED_S, PER_ARRAY_S = 0.002, 20e-6  # cost of a snapshot, before the first has been measured
MANY = 200  # arrays: a snapshot of fewer measures the fixed cost, one of more the cost per array

# Reasons for a snapshot: a step has ended, there are more arrays, a call missed JAX's cache, enough time has
# passed at a transfer, a library's compilation or a sample of the stack, the user requests it, the recording
# ends, memory ran out.
STEP, GROWTH, MISS, TIME, REQUESTED = "step", "growth", "miss", "time", "asked"
EXIT, EXHAUSTED = "exit", "exhausted"


class Budget:
    """Adds up the seconds spent on snapshots of the live arrays, and decides whether a further snapshot may
    be taken.

    Args:
      clock: returns the present time in seconds.

    Attributes:
      spent: all seconds spent, also those on counting the arrays.
      counting: the seconds among ``spent`` in which arrays were only counted and no snapshot was taken.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self.spent = 0.0
        self.counting = 0.0
        self._fixed, self._per_array = FIXED_S, PER_ARRAY_S

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning of the recording."""
        return self._clock() - self._began

    def expected(self, count: int) -> float:
        """Return an estimate of the seconds that a snapshot of ``count`` live arrays takes."""
        return self._fixed + count * self._per_array

    def allows(self, seconds: float) -> bool:
        """Return whether ``seconds`` more may be spent on snapshots of the live arrays now. All snapshots
        together may take at most the fraction SHARE of the time since the recording began."""
        return self.spent + seconds <= SHARE * self.elapsed

    @property
    def next_counting(self) -> float:
        """The earliest time, in seconds by the clock, at which the live arrays may be counted again. Before
        this time, counting has used up its part of the time for snapshots (COUNTING_SHARE), or snapshots have
        used up all of it."""
        return self._began + max(self.counting / COUNTING_SHARE, self.spent) / SHARE

    def counted(self, seconds: float) -> None:
        """Add ``seconds``, the time that counting the live arrays took without taking a snapshot, to the time
        spent."""
        self.spent += seconds
        self.counting += seconds

    def taken(self, seconds: float, count: int) -> None:
        """Add ``seconds``, the duration of a snapshot of ``count`` live arrays, to the time spent, and adjust
        the estimate of ``expected``."""
        self.spent += seconds
        if count < MANY:
            self._fixed = max(FIXED_S, seconds - count * PER_ARRAY_S)
        else:
            self._per_array = max(0.0, seconds - self._fixed) / count * 1.5 + 1e-6


class Sampler:
    """Takes the snapshots of the live arrays of one recording.

    Args:
      emit: is called with each snapshot.
      step: returns the number of the current training step, or None if steps are not counted.
      look: begins a snapshot and returns it. The snapshot has ``count`` (the number of arrays), ``seconds``
        (spent on it so far) and ``take``, which completes it.
      clock: returns the present time in seconds.

    Attributes:
      budget: adds up the seconds spent on snapshots.
      looks: the number of snapshots taken.
    """

    def __init__(
        self,
        emit: Callable[[ArraysSeen], None],
        step: Callable[[], int | None],
        look: Callable[[], Any] = Look,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._emit = emit
        self._step = step
        self._look = look
        self.budget = Budget(clock)
        self.looks = 0
        self._clock = clock
        # Arrays to which no variable leads, by shape, dtype and origin: (their number in the last snapshot,
        # how often in a row it has grown).
        self._unnamed: dict[UnnamedKey, tuple[int, int]] = {}
        self._next = 0.0  # the time by the clock before which arrays are not even counted
        self._last_step = 0, clock()  # the step that ended last, and when
        self._due = 0  # the step at whose end a snapshot is due
        self._count = 0  # arrays in the last snapshot
        self._wait = 0.0  # without steps: seconds from the beginning before which no snapshot is taken

    def step_ended(self, step: int) -> int:
        """Take a snapshot of the live arrays at the end of the training step number ``step``, if one is due
        or the number of arrays has grown, and the time budget allows it. Return after how many more steps
        this method is to be called again."""
        now = self._clock()
        step_seconds = (now - self._last_step[1]) / max(1, step - self._last_step[0])
        self._last_step = step, now
        if now >= self._next:
            counting = self.budget.counting
            shield.attempt("live_arrays", self._after_step, step, sys._getframe(1))
            # After a pause without steps there is much time to spend. It must not go into counting the
            # arrays at each of the next steps.
            rest = (self.budget.counting - counting) / (SHARE * COUNTING_SHARE)
            self._next = max(self.budget.next_counting, self._clock() + rest)
        until = min((self._next - self._clock()) / max(step_seconds, 1e-9), MAX_STEPS)
        return max(1, min(int(until), self._due - step if self._due > step else MAX_STEPS))

    def _after_step(self, step: int, frame: FrameType) -> None:
        """Take a snapshot of the live arrays at the end of the training step number ``step``, if one is due
        or the number of arrays has grown, and the time budget allows it. The search for variables starts at
        ``frame``."""
        look = self._look()
        due = step >= self._due
        cost = look.seconds + self.budget.expected(look.count)
        # The first snapshot may be taken before there is a budget for it.
        allowed = self.budget.allows(cost) or (not self.looks and cost <= FIRST_COST_S)
        if (due or look.count > GROWN * self._count + 1) and allowed:
            self._take(look, frame, STEP if due else GROWTH, step)
            if due:
                self._due = step + 1 if step < FIRST_STEPS else 2 * step
        else:
            self.budget.counted(look.seconds)

    def at_miss(self, frame: FrameType) -> None:
        """In a program without steps, take a snapshot of the live arrays at a call of a function of the user
        that missed the fast path (the C++ cache), unless it is too early for one or the time budget forbids
        it. The search for variables starts at ``frame``."""
        self._between(frame, MISS)

    def at_transfer(self, frame: FrameType) -> None:
        """In a program without steps, take a snapshot of the live arrays, unless it is too early for one or
        the time budget forbids it. None is taken in the first FIRST_S seconds. This is called at a transfer,
        or when a call of a library's function missed the fast path (the C++ cache). The search for variables
        starts at ``frame``."""
        if self.budget.elapsed >= FIRST_S:
            self._between(frame, TIME)

    def at_sample(self, frame: FrameType) -> float:
        """In a program without steps, take a snapshot of the live arrays, unless it is too early for one or
        the time budget forbids it. Return after how many seconds to call this method again. It is called now
        and then in the main thread. The search for variables starts at ``frame``."""
        if self._step() is not None:
            return PAUSE_S
        self.at_transfer(frame)
        return max(SHORTEST_S, self._wait - self.budget.elapsed)

    def _between(self, frame: FrameType, why: str) -> None:
        """Take a snapshot of the live arrays for the reason ``why`` (MISS or TIME), if steps are not counted,
        enough time has passed and the time budget allows it. The search for variables starts at ``frame``."""
        if self.budget.elapsed >= self._wait and self._step() is None:
            shield.attempt("live_arrays", self._without_steps, frame, why)

    def _without_steps(self, frame: FrameType, why: str) -> None:
        """Take a snapshot of the live arrays for the reason ``why`` if the time budget allows it, and set
        when the next one may be taken. The search for variables starts at ``frame``."""
        look = self._look()
        if self.budget.allows(look.seconds + self.budget.expected(look.count)):
            self._take(look, frame, why, None)
            self._wait = APART * self.budget.elapsed
        else:
            self.budget.counted(look.seconds)
            self._wait = (self.budget.spent + self.budget.expected(look.count)) / SHARE

    def now(self, frame: FrameType) -> None:
        """Take the snapshot of the live arrays that the program requests by ``jaxscope.snapshot()``. The
        search for variables that lead to arrays starts at ``frame``."""
        shield.attempt("live_arrays", self._now, frame)

    def _now(self, frame: FrameType) -> None:
        self._take(self._look(), frame, REQUESTED, self._ended_step())

    def ended(self, frame: FrameType, *, leaving: bool) -> None:
        """Take the last snapshot of the live arrays in the recording. The search for variables that lead to
        arrays starts at ``frame``. ``leaving`` is whether the program ends too. If so, also the variables in
        the traceback of an uncaught exception are searched."""
        shield.attempt("live_arrays", self._last, frame, leaving)

    def _last(self, frame: FrameType, leaving: bool) -> None:
        """Take the last snapshot of the live arrays in the recording. If an exception ends the recording, the
        variables in its traceback are searched, too. If memory ran out, the snapshot also has the error
        message and the line. ``frame``: where the search for variables starts. ``leaving``: whether the
        program ends too."""
        error = _error(leaving)
        trace = error.__traceback__ if error is not None else None
        message = exhausted(error)
        if message is not None:
            more = {"error": message[:2000], "site": next(iter(frames.raised_through(trace)), None)}
            self._take(self._look(), frame, EXHAUSTED, self._ended_step(), trace=trace, **more)
        else:
            self._take(self._look(), frame, EXIT, self._ended_step(), trace=trace)

    def _ended_step(self) -> int | None:
        """Return the number of the training step that ended last; 0 if none has ended, None if steps are not
        counted."""
        now = self._step()
        return None if now is None else max(0, now - 1)

    def _take(self, look: Any, frame: FrameType, why: str, step: int | None, **more: Any) -> None:
        """Complete the snapshot ``look`` of the live arrays, and pass it to ``emit``.

        Args:
          look: the snapshot, which has counted the arrays already.
          frame: where the search for variables that lead to arrays starts.
          why: the reason for the snapshot: STEP, GROWTH, ...
          step: the training step that ended last; 0: none yet; None: steps are not counted.
          more: further fields of the event.
        """
        # The search for the objects that refer to arrays visits all objects of the program. Before the end
        # it is made only if the program has run for long enough.
        costly = why in (STEP, GROWTH, MISS, TIME) and not self.budget.allows(REFERRERS_S)
        suspects = () if costly else {key for key, (_, rose) in self._unnamed.items() if rose >= RISES}
        snapshot = look.take(frame, why, step, suspects=suspects, **more)
        self._emit(snapshot)
        self._remember(snapshot, suspects)
        self.looks += 1
        self._count = look.count
        self.budget.taken(look.seconds, look.count)

    def _remember(self, snapshot: ArraysSeen, searched: Collection[UnnamedKey]) -> None:
        """Count, for the arrays to which no variable leads, in how many snapshots their number has grown
        since it last fell. Arrays with equal shapes, dtypes and origins are counted together.

        Args:
          snapshot: the newest snapshot.
          searched: (shape, dtype, origin) of the arrays for which this snapshot has searched the objects that
            refer to them. The search is not made again before their number has fallen.
        """
        counts: collections.Counter[UnnamedKey] = collections.Counter()
        for g in snapshot.groups:
            if g.path is None:
                counts[unnamed_key(g, g.origin)] += g.count
        unnamed = {}
        for key, n in counts.items():
            before, rises = self._unnamed.get(key, (n, 0))
            if key in searched:
                rises = NEVER_AGAIN
            elif n != before:
                rises = rises + 1 if n > before else 0
            unnamed[key] = n, rises
        self._unnamed = unnamed

    def forked(self) -> None:
        """Start anew in a forked child: forget all snapshots and the time that the parent has spent on
        them."""
        self.__init__(self._emit, self._step, self._look, self._clock)  # type: ignore[misc]


def _error(leaving: bool) -> BaseException | None:
    """Return the exception that is being handled now, if there is one. Otherwise, if the program ends
    (``leaving``), return the uncaught exception that the interpreter keeps. Return None if there is no
    exception."""
    error = sys.exc_info()[1]
    if error is None and leaving:
        error = last_exception.stored()
    return error


def exhausted(error: BaseException | None) -> str | None:
    """Return JAX's message that memory ran out, if ``error`` or an exception that led to it (``__cause__``,
    ``__context__``) has such a message; else None."""
    for _ in range(10):
        if error is None:
            return None
        if frames.root(type(error).__module__) in libraries.JAX_ROOTS:
            message = str(error)
            if libraries.no_memory(message):
                return message
        error = error.__cause__ or error.__context__
    return None
