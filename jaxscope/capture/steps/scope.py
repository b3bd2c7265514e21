"""Collect the calls that miss the fast path in a part of a recording (a block such as ``no_recompiles``),
and number the steps inside it.

The tracker passes these calls on as they happen. The reader of the log decides which of them count.
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
    """The calls of one watched function so far.

    Attributes:
      value: the number of calls.
      function: the id of the function.
      step: whether it is watched as a step function (``watch(step=True)``).
    """

    value: int
    function: str
    step: bool


class Tracker(Protocol):
    """The part of StepTracker that a RecordingScope uses.

    Attributes:
      marks: the number of calls of ``jaxscope.step()`` so far.
      counters: the counters of the watched functions.
    """

    @property
    def marks(self) -> int: ...

    @property
    def counters(self) -> Sequence[Any]: ...


# The blocks that the running code is in. Two asyncio tasks on one thread are in different blocks. In a thread
# that was started inside a block this is empty; its calls count for all open blocks.
around: ContextVar[tuple[RecordingScope, ...]] = ContextVar("jaxscope_blocks", default=())


class Seen(NamedTuple):
    """The state at a call that missed the fast path.

    Attributes:
      marks: the number of calls of ``jaxscope.step()`` so far.
      calls: the number of calls so far of each watched function, by its counter.
    """

    marks: int
    calls: Mapping[Any, int]


class RecordingScope:
    """A part of a recording, with steps that are numbered inside it. It is open from ``tracker.open`` to
    ``tracker.close``, and can be opened several times.

    Args:
      tracker: the tracker of the recording.
      alarm: is called at the end of a step, or before a call of a watched function, if a call has left the
        fast path since the last time. It returns whether it could check, and may raise RecompileError.
      own: whether calls in other enclosing blocks and in other asyncio tasks are left out.

    Attributes:
      calls: the state at each call that missed the fast path, by the call's number.
      first: the counter of the watched function that was called first in this block; None: none was called.
    """

    def __init__(
        self, tracker: Tracker, alarm: Callable[[], bool] | None = None, *, own: bool = True
    ) -> None:
        self.alarm = alarm
        self._own = own
        self._task = _task() if own else None
        self.calls: dict[int, Seen] = {}
        self.first: Counter | None = None
        self._tracker = tracker
        self._marks = tracker.marks
        self._before = {counter: counter.value for counter in tracker.counters}

    @property
    def runs_here(self) -> bool:
        """Whether the running code is part of this block, and not of another block or asyncio task."""
        if not self._own:
            return True
        inside = around.get()
        if inside:
            return self in inside
        task = _task()
        return task is None or self._task is None or task() is self._task()

    def missed(self, call: int, marks: int, calls: Mapping[Any, int]) -> None:
        """Note that the call number ``call`` missed the fast path, if it belongs to this block.

        Args:
          call: the number of the call.
          marks: the number of calls of ``jaxscope.step()`` so far.
          calls: the number of calls so far of each watched function, by its counter.
        """
        if self.runs_here:
            self.calls[call] = Seen(marks, calls)

    @property
    def settled(self) -> bool:
        """Whether it is known if ``jaxscope.step()`` or the calls of a function count the steps of this
        block.

        If the program has called ``jaxscope.step()`` before the block, it may do so again.
        """
        counting = self.counting
        return bool(counting.marks or not self._marks or counting.steppers)

    @property
    def counting(self) -> Counting:
        """The numbers of steps and calls in this block so far."""
        counters = [*([self.first] if self.first is not None else []), *self._tracker.counters]
        calls = {c.function: c.value - self._before.get(c, 0) for c in counters}
        called = {function: n for function, n in calls.items() if n > 0}
        steppers = frozenset(c.function for c in counters if c.step and c.function in called)
        return Counting(self._tracker.marks - self._marks, called, steppers)

    def steps(self, inside: Callable[[int, str], bool] = lambda call, function: False) -> dict[int, Step]:
        """Return the step of this block that each call belongs to, by the call's number.

        Args:
          inside: returns whether the call with this number was made within a call of the function with this
            id.
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
