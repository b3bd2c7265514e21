"""Decide when to take snapshots of the live arrays, so that they cost at most SHARE of the wall time.

Snapshots are taken at the first steps, then at steps twice as far apart each time, and between them when the
number of arrays has grown; where nothing counts steps, at cache misses and at transfers, after APART times as
long each time. A snapshot that the user requests, one at exit and one when memory runs out are always taken,
and delay those after them.
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
COUNTING_SHARE = 0.1  # of SHARE is for counting the arrays without a snapshot
FIRST_STEPS = 4
FIRST_S = 1.0  # seconds before the first snapshot by time
APART = 1.5
GROWN = 1.25
RISES = 3  # snapshots in a row with more unnamed arrays: then their holder is searched for
NEVER_AGAIN = -1_000_000  # rises of arrays whose holder was searched for already
REFERRERS_S = 0.1
MAX_STEPS = 1000  # without reading the clock: steps may become longer
FIXED_S, PER_ARRAY_S = 0.002, 20e-6  # cost of a snapshot, before the first has been measured
MANY = 200  # arrays: a snapshot of fewer measures the fixed cost, one of more the cost per array

# Reasons for a snapshot: a step, more arrays, a cache miss, time at a transfer or a library's compilation,
# the user's request, exit, memory ran out.
STEP, GROWTH, MISS, TIME, REQUESTED = "step", "growth", "miss", "time", "asked"
EXIT, EXHAUSTED = "exit", "exhausted"


class Budget:
    """The seconds spent on snapshots so far, measured with ``clock``. It decides whether more may be spent.

    Attributes:
      spent: all seconds spent.
      counting: the part of them that was spent on counting arrays.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self.spent = 0.0
        self.counting = 0.0
        self._fixed, self._per_array = FIXED_S, PER_ARRAY_S

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    def expected(self, count: int) -> float:
        """Estimate the seconds that a snapshot of ``count`` arrays takes."""
        return self._fixed + count * self._per_array

    def allows(self, seconds: float) -> bool:
        return self.spent + seconds <= SHARE * self.elapsed

    @property
    def next_counting(self) -> float:
        """The time by the clock at which the arrays may be counted again."""
        return self._began + max(self.counting / COUNTING_SHARE, self.spent) / SHARE

    def counted(self, seconds: float) -> None:
        """Add the cost of counting the arrays."""
        self.spent += seconds
        self.counting += seconds

    def taken(self, seconds: float, count: int) -> None:
        """Add the cost of a snapshot of ``count`` arrays, and improve the estimate by it."""
        self.spent += seconds
        if count < MANY:
            self._fixed = max(FIXED_S, seconds - count * PER_ARRAY_S)
        else:
            self._per_array = max(0.0, seconds - self._fixed) / count * 1.5 + 1e-6


class Sampler:
    """Takes the snapshots of one recording.

    Args:
      emit: receives each snapshot.
      step: returns the present step; None: steps are not counted.
      look: begins a snapshot; has ``count``, ``seconds`` and ``take``.
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
        self._unnamed: dict[UnnamedKey, tuple[int, int]] = {}  # count in the last snapshot, times it rose
        self._next = 0.0  # by the clock: nothing is counted before
        self._last_step = 0, clock()  # the step that ended last, and when
        self._due = 0  # the step at whose end a snapshot is due
        self._count = 0  # arrays in the last snapshot
        self._wait = 0.0  # seconds from the beginning before which no miss causes a snapshot

    def step_ended(self, step: int) -> int:
        """Take a snapshot at the end of ``step`` if one is due. Return after how many steps to call again."""
        now = self._clock()
        step_seconds = (now - self._last_step[1]) / max(1, step - self._last_step[0])
        self._last_step = step, now
        if now >= self._next:
            counting = self.budget.counting
            shield.attempt("arrays", self._after_step, step, sys._getframe(1))
            # Time saved while nothing ran must not be spent on counting at every one of the next steps.
            rest = (self.budget.counting - counting) / (SHARE * COUNTING_SHARE)
            self._next = max(self.budget.next_counting, self._clock() + rest)
        until = min((self._next - self._clock()) / max(step_seconds, 1e-9), MAX_STEPS)
        return max(1, min(int(until), self._due - step if self._due > step else MAX_STEPS))

    def _after_step(self, step: int, frame: FrameType) -> None:
        look = self._look()
        due = step >= self._due
        if (due or look.count > GROWN * self._count + 1) and self.budget.allows(
            look.seconds + self.budget.expected(look.count)
        ):
            self._take(look, frame, STEP if due else GROWTH, step)
            if due:
                self._due = step + 1 if step < FIRST_STEPS else 2 * step
        else:
            self.budget.counted(look.seconds)

    def missed(self, frame: FrameType) -> None:
        """Take a snapshot, if affordable, before a function of the user's is compiled and nothing counts
        steps."""
        self._between(frame, MISS)

    def passed(self, frame: FrameType) -> None:
        """Take a snapshot, if affordable, at a transfer or before a library's compilation, where nothing
        counts steps."""
        if self.budget.elapsed >= FIRST_S:
            self._between(frame, TIME)

    def _between(self, frame: FrameType, why: str) -> None:
        if self.budget.elapsed >= self._wait and self._step() is None:
            shield.attempt("arrays", self._without_steps, frame, why)

    def _without_steps(self, frame: FrameType, why: str) -> None:
        look = self._look()
        if self.budget.allows(look.seconds + self.budget.expected(look.count)):
            self._take(look, frame, why, None)
            self._wait = APART * self.budget.elapsed
        else:
            self.budget.counted(look.seconds)
            self._wait = (self.budget.spent + self.budget.expected(look.count)) / SHARE

    def now(self, frame: FrameType) -> None:
        """Take the snapshot of ``jaxscope.snapshot()``."""
        shield.attempt("arrays", self._now, frame)

    def _now(self, frame: FrameType) -> None:
        self._take(self._look(), frame, REQUESTED, self._ended_step())

    def ended(self, frame: FrameType, *, leaving: bool) -> None:
        """Take the last snapshot of the recording. ``leaving``: the program ends too."""
        shield.attempt("arrays", self._last, frame, leaving)

    def _last(self, frame: FrameType, leaving: bool) -> None:
        error = _error(leaving)
        trace = error.__traceback__ if error is not None else None
        message = exhausted(error)
        if message is not None:
            more = {"error": message[:2000], "site": next(iter(frames.raised_through(trace)), None)}
            self._take(self._look(), frame, EXHAUSTED, self._ended_step(), trace=trace, **more)
        else:
            self._take(self._look(), frame, EXIT, self._ended_step(), trace=trace)

    def _ended_step(self) -> int | None:
        """Return the step that ended last."""
        now = self._step()
        return None if now is None else max(0, now - 1)

    def _take(self, look: Any, frame: FrameType, why: str, step: int | None, **more: Any) -> None:
        # The search for holders visits every object of the program: while it runs, only if it ran long.
        costly = why in (STEP, GROWTH, MISS, TIME) and not self.budget.allows(REFERRERS_S)
        suspects = () if costly else {key for key, (_, rose) in self._unnamed.items() if rose >= RISES}
        snapshot = look.take(frame, why, step, suspects=suspects, **more)
        self._emit(snapshot)
        self._remember(snapshot, suspects)
        self.looks += 1
        self._count = look.count
        self.budget.taken(look.seconds, look.count)

    def _remember(self, snapshot: ArraysSeen, searched: Collection[UnnamedKey]) -> None:
        """Count how often each kind of unnamed array rose in number; those in ``searched`` are not suspected
        again."""
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
        """Start anew in a forked child: what was spent was the parent's."""
        self.__init__(self._emit, self._step, self._look, self._clock)  # type: ignore[misc]


def _error(leaving: bool) -> BaseException | None:
    """Return the exception that ends the program or leaves the block; the interpreter keeps an uncaught
    one."""
    error = sys.exc_info()[1]
    if error is None and leaving:
        error = last_exception.stored()
    return error


def exhausted(error: BaseException | None) -> str | None:
    """Return JAX's message that memory ran out, where that caused ``error``."""
    for _ in range(10):
        if error is None:
            return None
        if frames.root(type(error).__module__) in libraries.JAX_ROOTS:
            message = str(error)
            if libraries.no_memory(message):
                return message
        error = error.__cause__ or error.__context__
    return None
