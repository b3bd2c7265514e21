"""Collect the calls that miss the fast path (the C++ cache) in a part of a recording, such as a
``with no_recompiles()`` block, and number the training steps inside this part.

The StepTracker reports each such call when it happens. The code that reads the log decides later which of the
calls count as recompilations.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from jaxscope.schema.steps import Counting, Step


class CallCounter(Protocol):
    """Counts the calls of one watched function (``jaxscope.watch``).

    Attributes:
      value: the number of calls so far.
      function: the id of the function.
      step: whether each call is a training step (``watch(step=True)``).
    """

    value: int
    function: str
    step: bool


class Tracker(Protocol):
    """The two attributes of a StepTracker (the counter of a recording's training steps) that a block such as
    ``with no_recompiles()`` reads.

    Attributes:
      marks: the number of calls of ``jaxscope.step()`` so far.
      counters: the counters of the functions wrapped by ``jaxscope.watch``.
    """

    @property
    def marks(self) -> int: ...

    @property
    def counters(self) -> Sequence[Any]: ...


# The blocks (such as ``with no_recompiles()``) that the running code is in. Two asyncio tasks on one thread
# are in different blocks. In a thread that was started inside a block this is empty; its calls count for all
# open blocks.
around: ContextVar[tuple[RecordingScope, ...]] = ContextVar("jaxscope_blocks", default=())


class Seen(NamedTuple):
    """The counts at the time when a call missed the fast path (the C++ cache). The training step of this call
    is computed from them later.

    Attributes:
      marks: the number of calls of ``jaxscope.step()`` so far.
      calls: counter of a function wrapped by ``jaxscope.watch`` -> the number of calls of the function so
        far.
    """

    marks: int
    calls: Mapping[Any, int]


class RecordingScope:
    """A block of a recording, such as ``with no_recompiles()``, with training steps that are numbered inside
    the block. The block is open from ``tracker.open`` to ``tracker.close``, and can be opened several times.

    Args:
      tracker: the StepTracker, which counts the training steps of the whole recording.
      alarm: a function that checks the calls which missed the fast path (JAX's C++ cache). After such calls,
        it is called at the end of a step and before a call of a watched function (``jaxscope.watch``). It
        returns whether it could check, and may raise RecompileError. None: nothing is checked.
      own: whether calls are left out that code inside other blocks but not inside this one makes, or another
        asyncio task. If False, all calls made while the block is open count.

    Attributes:
      calls: number of each call in this block that missed the fast path -> the counts at that time.
      first: the counter of the watched function that was called first in this block; None: none was called.
    """

    def __init__(
        self, tracker: Tracker, alarm: Callable[[], bool] | None = None, *, own: bool = True
    ) -> None:
        self.alarm = alarm
        self._own = own
        self._task = _task() if own else None
        self.calls: dict[int, Seen] = {}
        self.first: CallCounter | None = None
        self._tracker = tracker
        self._marks = tracker.marks
        self._before = {counter: counter.value for counter in tracker.counters}

    @property
    def runs_here(self) -> bool:
        """Whether calls that the running code makes now count for this block. They do not count if the code
        is inside other blocks but not inside this one. Code inside no block (as in a new thread) counts,
        except in another asyncio task than the one that created this block. Always True if ``own`` is
        False."""
        if not self._own:
            return True
        inside = around.get()
        if inside:
            return self in inside
        task = _task()
        return task is None or self._task is None or task() is self._task()

    def missed(self, call: int, marks: int, calls: Mapping[Any, int]) -> None:
        """Record that the call with the number ``call`` missed the fast path (the C++ cache), if the running
        code belongs to this block (``runs_here``).

        Args:
          marks: the number of calls of ``jaxscope.step()`` so far.
          calls: counter of a function wrapped by ``jaxscope.watch`` -> the number of calls of the function so
            far.
        """
        if self.runs_here:
            self.calls[call] = Seen(marks, calls)

    @property
    def settled(self) -> bool:
        """Whether it is certain what ends the training steps in this block: calls of ``jaxscope.step()``, or
        of a function. It is uncertain if the program has called ``jaxscope.step()`` before this block but not
        inside it, and no function watched with ``step=True`` was called inside it."""
        counting = self.counting
        return bool(counting.marks or not self._marks or counting.steppers)

    @property
    def counting(self) -> Counting:
        """What has been counted since this block was created: the calls of ``jaxscope.step()``, the calls of
        each watched function (``jaxscope.watch``) that was called, and which of these functions are watched
        with ``step=True``."""
        counters = [*([self.first] if self.first is not None else []), *self._tracker.counters]
        calls = {c.function: c.value - self._before.get(c, 0) for c in counters}
        called = {function: n for function, n in calls.items() if n > 0}
        steppers = frozenset(c.function for c in counters if c.step and c.function in called)
        return Counting(self._tracker.marks - self._marks, called, steppers)

    def steps(self, inside: Callable[[int, str], bool] = lambda call, function: False) -> dict[int, Step]:
        """Return a dict: number of a call -> the training step in which the call was made, counted inside
        this block. The dict has each call in this block that missed the fast path (the C++ cache). A step is
        None if no steps are counted, and an ``Either`` if the counts allow two numbers.

        ``inside`` returns whether a call, given by its number, was made while a function, given by its id,
        was running.
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
    """Return a weak reference to the asyncio task that runs in this thread; None if there is none."""
    asyncio = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:  # no loop runs in this thread
        return None
    return weakref.ref(task) if task is not None else None
