"""What a step is: counted by marks at their ends, or by the calls of watched functions at their beginnings.

One rule for a whole run and for a part of one (a block, a test). Steps count from 1; before the first call it is
step 0. Where two ways of counting contradict each other, both are kept: whoever needs to know says that it is not clear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec


class Either(NamedTuple):
    """A step of which two ways of counting say different things. ``because``: which, for people."""

    least: int
    most: int
    because: str


Step = int | Either | None  # None: nothing counts the steps


class Counting(msgspec.Struct, frozen=True):
    """What was counted in a run, or in a part of one, from its beginning to its end.

    Attributes:
      marks: steps that ended by a mark.
      calls: of each watched function that was called (by its id), in the order of their first calls.
      steppers: those that are watched with ``step=True``.
    """

    marks: int
    calls: Mapping[str, int]
    steppers: frozenset[str] = frozenset()

    def step(
        self, marks: int, calls: Mapping[str, int], inside: Callable[[str], bool] = lambda _: False
    ) -> Step:
        """The step at a moment when so many ``marks`` and ``calls`` had been counted.

        Marks count, where there are any. Else the functions watched with ``step=True``: the one that was called
        most often. Else the first watched function called that was called again: a function called once does not
        count the turns of a loop.

        Args:
          inside: does the moment lie within a call of this function?
        """
        steppers = [f for f in self.calls if f in self.steppers]
        most = max((calls.get(f, 0) for f in steppers or self.calls), default=0)
        if self.marks:
            if steppers and not marks and most > 1:
                return Either(
                    1, most, "the first step mark and the calls of a watched step function disagree"
                )
            return marks + 1
        if steppers:
            return most
        first = next((f for f, n in self.calls.items() if n > 1), next(iter(self.calls), None))
        if first is None:
            return None
        step = calls.get(first, 0)
        if most > step and not inside(first):
            return Either(step, most, "several functions are watched, and none of them with step=True")
        return step


def known(step: Step, n: int) -> int | None:
    """``step`` as far as it matters whether it comes after step ``n``; None: that is not known."""
    if not isinstance(step, Either):
        return step
    return step.least if step.least > n else step.most if step.most <= n else None
