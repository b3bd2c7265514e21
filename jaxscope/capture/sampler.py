"""When to look at the live arrays, so that all looks together cost at most SHARE of the wall time.

The first steps, then steps twice as far each time, and between them where memory has grown; where
nobody counts steps, at misses. What the user asks for, the program's end and its death for want of
memory are always looked at, and paid for by the looks after them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from jaxscope.capture import frames, shield
from jaxscope.capture.live_arrays.look import Look, Lost, lost_as
from jaxscope.schema import libraries
from jaxscope.schema.events import ArraysSeen

SHARE = 0.01
GLANCES = 0.1  # of SHARE goes to counting alone
FIRST_STEPS = 4
GROWN = 1.25
RISES = 3  # looks in a row at which unnamed arrays were more: then what holds them is looked for
REFERRERS_S = 0.1
MAX_STEPS = 1000  # without a look at the clock: steps may become longer
FIXED_S, PER_ARRAY_S = 0.002, 20e-6  # a look at n arrays, before the first has been measured
MANY = 200  # arrays: a look at fewer says what any look costs, and nothing of what an array does

STEP, GROWTH, MISS, ASKED, EXIT, EXHAUSTED = "step", "growth", "miss", "asked", "exit", "exhausted"


class Budget:
    """What was spent, and whether more can be. Seconds by ``clock``, from its making on."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self.spent = 0.0
        self.glanced = 0.0  # of it, on counting alone
        self._fixed, self._per_array = FIXED_S, PER_ARRAY_S

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    def expected(self, count: int) -> float:
        """Seconds that a look at ``count`` arrays will cost."""
        return self._fixed + count * self._per_array

    def allows(self, seconds: float) -> bool:
        return self.spent + seconds <= SHARE * self.elapsed

    @property
    def next_glance(self) -> float:
        """When, by the clock, counting can be paid again."""
        return self._began + max(self.glanced / GLANCES, self.spent) / SHARE

    def paid(self, seconds: float, *, count: int | None = None, glance: bool = False) -> None:
        """``count``: of the arrays that were looked at."""
        self.spent += seconds
        if glance:
            self.glanced += seconds
        elif count is not None and count < MANY:
            self._fixed = max(FIXED_S, seconds - count * PER_ARRAY_S)
        elif count:
            self._per_array = max(0.0, seconds - self._fixed) / count * 1.5 + 1e-6


class Sampler:
    """The looks of one recording.

    Args:
      emit: where snapshots go.
      step: the step that runs now; None where nothing counts steps.
      look: begins a look; has ``count``, ``seconds`` and ``take``.
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
        self._lost: dict[Lost, tuple[int, int]] = {}  # count at the latest look, times it rose
        self._next = 0.0  # by the clock: no look before
        self._asked = 0, clock()  # the step that ended last, and when
        self._due = 0  # the step at whose end a look is due
        self._seen = 0  # arrays at the latest look
        self._wait = 0.0  # misses: seconds from the beginning before which there is none

    def step_ended(self, step: int) -> int:
        """``step`` ended: look where there is reason and money. Returns after how many more steps to ask again."""
        now = self._clock()
        took = (now - self._asked[1]) / max(1, step - self._asked[0])
        self._asked = step, now
        if now >= self._next:
            glanced = self.budget.glanced
            shield.attempt("arrays", self._after_step, step, sys._getframe(1))
            # What was saved while nothing ran is not for a row of steps that are all glanced at.
            rest = (self.budget.glanced - glanced) / (SHARE * GLANCES)
            self._next = max(self.budget.next_glance, self._clock() + rest)
        until = min((self._next - self._clock()) / max(took, 1e-9), MAX_STEPS)
        return max(1, min(int(until), self._due - step if self._due > step else MAX_STEPS))

    def _after_step(self, step: int, frame: FrameType) -> None:
        look = self._look()
        due = step >= self._due
        if (due or look.count > GROWN * self._seen + 1) and self.budget.allows(
            look.seconds + self.budget.expected(look.count)
        ):
            self._take(look, frame, STEP if due else GROWTH, step)
            if due:
                self._due = step + 1 if step < FIRST_STEPS else 2 * step
        else:
            self.budget.paid(look.seconds, glance=True)

    def missed(self, frame: FrameType) -> None:
        """A function of the user's is about to be compiled."""
        if self._step() is None and self.budget.elapsed >= self._wait:
            shield.attempt("arrays", self._at_miss, frame)

    def _at_miss(self, frame: FrameType) -> None:
        look = self._look()
        if self.budget.allows(look.seconds + self.budget.expected(look.count)):
            self._take(look, frame, MISS, None)
            self._wait = 2 * self.budget.elapsed
        else:
            self.budget.paid(look.seconds, glance=True)
            self._wait = (self.budget.spent + self.budget.expected(look.count)) / SHARE

    def now(self, frame: FrameType) -> None:
        """``jaxscope.snapshot()``."""
        shield.attempt("arrays", self._now, frame)

    def _now(self, frame: FrameType) -> None:
        self._take(self._look(), frame, ASKED, self._ended())

    def ended(self, frame: FrameType, *, leaving: bool) -> None:
        """The recording ends; ``leaving``: so does the program."""
        shield.attempt("arrays", self._last, frame, leaving)

    def _last(self, frame: FrameType, leaving: bool) -> None:
        error = _error(leaving)
        trace = error.__traceback__ if error is not None else None
        said = exhausted(error)
        if said is not None:
            more = {"error": said[:2000], "site": next(iter(frames.raised_through(trace)), None)}
            self._take(self._look(), frame, EXHAUSTED, self._ended(), trace=trace, **more)
        else:
            self._take(self._look(), frame, EXIT, self._ended(), trace=trace)

    def _ended(self) -> int | None:
        """The step that ended last."""
        now = self._step()
        return None if now is None else max(0, now - 1)

    def _take(self, look: Any, frame: FrameType, why: str, step: int | None, **more: Any) -> None:
        # All objects of the program are gone through for these: not in the midst of it unless it is long.
        costly = why in (STEP, GROWTH, MISS) and not self.budget.allows(REFERRERS_S)
        suspects = () if costly else {what for what, (_, rose) in self._lost.items() if rose >= RISES}
        seen = look.take(frame, why, step, suspects=suspects, **more)
        self._emit(seen)
        self._remember(seen, suspects)
        self.looks += 1
        self._seen = look.count
        self.budget.paid(look.seconds, count=look.count)

    def _remember(self, seen: ArraysSeen, told: Collection[Lost]) -> None:
        """Arrays without a name that are more each time are suspects, once."""
        now: dict[Lost, int] = {}
        for g in seen.groups:
            if g.path is None:
                what = lost_as(g, g.origin)
                now[what] = now.get(what, 0) + g.count
        rose = {}
        for what, n in now.items():
            before, times = self._lost.get(what, (n, 0))
            rose[what] = (
                n,
                (-1_000_000 if what in told else times + 1 if n > before else times if n == before else 0),
            )
        self._lost = rose

    def forked(self) -> None:
        """In a forked child: what was spent was the parent's."""
        self.__init__(self._emit, self._step, self._look, self._clock)  # type: ignore[misc]


def _error(leaving: bool) -> BaseException | None:
    """The exception that ends the program or leaves the block; the interpreter keeps an uncaught one."""
    error = sys.exc_info()[1]
    if error is None and leaving:
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error


def exhausted(error: BaseException | None) -> str | None:
    """What JAX said when memory ran out, where that is behind ``error``."""
    for _ in range(10):
        if error is None:
            return None
        if frames.root(type(error).__module__) in libraries.JAX_ROOTS:
            said = str(error)
            if libraries.no_memory(said):
                return said
        error = error.__cause__ or error.__context__
    return None
