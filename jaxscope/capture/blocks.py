"""A part of a recording: what left the fast path while it was open, and the steps of the part itself.

Filled by the tally as it happens; whether it matters is decided by who reads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jaxscope.capture.steps import Counter, Tally

# The blocks that the running code is in. Two tasks on one thread are in blocks of their own; a thread that
# was started inside a block is in none by this, and belongs to all that are open.
around: ContextVar[tuple[Block, ...]] = ContextVar("jaxscope_blocks", default=())


class Seen(NamedTuple):
    """A call that left the fast path: the marks so far, and the calls of each watched function so far."""

    marks: int
    calls: Mapping[Counter, int]


class Block:
    """Open between ``tally.open`` and ``tally.close``, as often as its owner likes.

    Args:
      tally: of the recording it is part of.
      alarm: called at a step mark, or before a call of a watched function, where something left the fast
        path since: returns whether it could look; may raise what its owner asked for.
    """

    def __init__(self, tally: Tally, alarm: Callable[[], bool] | None = None, *, own: bool = True) -> None:
        self.alarm = alarm
        self._own = own
        self.calls: dict[int, Seen] = {}  # by the number of the call
        self.first: Counter | None = None  # the watched function that was called first in here
        self._tally = tally
        self._marks = tally.marks
        self._before = {counter: counter.value for counter in tally.counters}

    def missed(self, call: int, marks: int, calls: Mapping[Counter, int]) -> None:
        inside = around.get() if self._own else ()
        if not inside or self in inside:
            self.calls[call] = Seen(marks, calls)

    @property
    def marked(self) -> bool:
        """Was a step of this block ended by a mark?"""
        return self._tally.marks > self._marks

    @property
    def stepper(self) -> Counter | None:
        """Whose calls are the steps where there are no marks; None: nothing watched was called in here."""
        called = (c for c in self._tally.counters if c.step and c.value > self._before.get(c, 0))
        return next(called, self.first)

    @property
    def settled(self) -> bool:
        """Is it clear what counts the steps? Where the program has made marks before, they may come again."""
        stepper = self.stepper
        return self.marked or not self._marks or (stepper is not None and stepper.step)

    def steps(self) -> dict[int, int | None]:
        """The step of the block that each call belongs to, from 1; 0 before the first; None: nothing counts them."""
        if self.marked:
            return {call: seen.marks - self._marks + 1 for call, seen in self.calls.items()}
        stepper = self.stepper
        if stepper is None:
            return dict.fromkeys(self.calls)
        before = self._before.get(stepper, 0)
        return {call: seen.calls.get(stepper, 0) - before for call, seen in self.calls.items()}
