"""Number the steps of a program: by marks at their ends, or by calls of watched functions at their
beginnings.

The same rule is used for a whole run and for a part of one (a block, a test). Steps count from 1; before the
first call it is step 0. Where two ways of counting disagree, both numbers are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from jaxscope.schema.messages import Message, message


class Either(NamedTuple):
    """A step with different numbers by two ways of counting. ``because``: the reason, for messages."""

    least: int
    most: int
    because: Message


Step = int | Either | None  # None: steps are not counted


class Counting(msgspec.Struct, frozen=True):
    """The totals of a run, or of a part of one.

    Attributes:
      marks: number of steps that ended with ``jaxscope.step()``.
      calls: number of calls by function id, of watched functions in the order of their first calls.
      steppers: ids of functions watched with ``step=True``.
    """

    marks: int
    calls: Mapping[str, int]
    steppers: frozenset[str] = frozenset()

    def step(
        self, marks: int, calls: Mapping[str, int], inside: Callable[[str], bool] = lambda _: False
    ) -> Step:
        """Return the step at the time when ``marks`` and ``calls`` had been counted.

        If there are marks, they are counted. If not, the calls of the function watched with ``step=True``
        are counted (if there are several, of the one that is called most often). If there is none, the
        calls of the first watched function that was called more than once are counted.

        Args:
          inside: returns whether that time is during a call of the function with the given id.
        """
        steppers = [f for f in self.calls if f in self.steppers]
        most = max((calls.get(f, 0) for f in steppers or self.calls), default=0)
        if self.marks:
            if steppers and not marks and most > 1:
                return Either(1, most, message("mark-and-calls-disagree"))
            return marks + 1
        if steppers:
            return most
        first = next((f for f, n in self.calls.items() if n > 1), next(iter(self.calls), None))
        if first is None:
            return None
        step = calls.get(first, 0)
        if most > step and not inside(first):
            return Either(step, most, message("several-functions-watched"))
        return step


def known(step: Step, n: int) -> int | None:
    """Return a number that shows whether ``step`` is after step ``n``; None if that is unknown."""
    if not isinstance(step, Either):
        return step
    return step.least if step.least > n else step.most if step.most <= n else None
