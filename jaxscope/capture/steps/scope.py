"""A part of a recording: the calls that left the fast path while it was open, and its own steps.

The tracker fills it during the calls; the reader of the log decides which calls count.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from jaxscope.schema.steps import Counting, Step


class Counter(Protocol):
    """The calls of one watched function so far; ``step``: watched as a step function."""

    value: int
    function: str
    step: bool


class Tracker(Protocol):
    """The part of StepTracker that a scope uses."""

    @property
    def marks(self) -> int: ...

    @property
    def counters(self) -> Sequence[Any]: ...


# The blocks that the running code is in. Two tasks on one thread are in blocks of their own; a thread that
# was started inside a block is in none by this, and belongs to all that are open.
around: ContextVar[tuple[RecordingScope, ...]] = ContextVar("jaxscope_blocks", default=())


class Seen(NamedTuple):
    """A call that left the fast path: the marks so far, and the calls of each watched function so far."""

    marks: int
    calls: Mapping[Any, int]


class RecordingScope:
    """A part of a recording with separate steps. It is open between ``tracker.open`` and ``tracker.close``,
    and can be opened several times.

    Args:
      tracker: the tracker of the recording to which it belongs.
      alarm: called at a step mark, or before a call of a watched function, if a call has left the fast path
        since the last time. Returns whether it could check; may raise RecompileError.
      own: exclude calls in other enclosing blocks and in other tasks.
    """

    def __init__(
        self, tracker: Tracker, alarm: Callable[[], bool] | None = None, *, own: bool = True
    ) -> None:
        self.alarm = alarm
        self._own = own
        self._task = _task() if own else None
        self.calls: dict[int, Seen] = {}  # by the number of the call
        self.first: Counter | None = None  # the watched function that was called first in here
        self._tracker = tracker
        self._marks = tracker.marks
        self._before = {counter: counter.value for counter in tracker.counters}

    @property
    def runs_here(self) -> bool:
        """Return whether the running code is part of this block, not of another block or task."""
        if not self._own:
            return True
        inside = around.get()
        if inside:
            return self in inside
        task = _task()
        return task is None or self._task is None or task() is self._task()

    def missed(self, call: int, marks: int, calls: Mapping[Any, int]) -> None:
        if self.runs_here:
            self.calls[call] = Seen(marks, calls)

    @property
    def settled(self) -> bool:
        """Return whether it is known how steps are counted: by marks or by calls.

        If the program has marked steps before, it may do so again.
        """
        counting = self.counting
        return bool(counting.marks or not self._marks or counting.steppers)

    @property
    def counting(self) -> Counting:
        """Return what was counted in this block so far."""
        counters = [*([self.first] if self.first is not None else []), *self._tracker.counters]
        calls = {c.function: c.value - self._before.get(c, 0) for c in counters}
        called = {function: n for function, n in calls.items() if n > 0}
        steppers = frozenset(c.function for c in counters if c.step and c.function in called)
        return Counting(self._tracker.marks - self._marks, called, steppers)

    def steps(self, inside: Callable[[int, str], bool] = lambda call, function: False) -> dict[int, Step]:
        """Return the step of the block that each call belongs to, by call number.

        Args:
          inside: returns whether the call with this number was made within a call of this function.
        """
        counting = self.counting
        return {
            call: counting.step(
                seen.marks - self._marks,
                {c.function: n - self._before.get(c, 0) for c, n in seen.calls.items()},
                functools.partial(inside, call),
            )
            for call, seen in self.calls.items()
        }


def _task() -> weakref.ref[Any] | None:
    """Return a weak reference to the current asyncio task; None if there is none."""
    asyncio = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:  # no loop runs in this thread
        return None
    return weakref.ref(task) if task is not None else None
