"""Find the number of the step (iteration of the training loop) at a moment of a program.

There are two ways of counting steps: by marks at their ends (``jaxscope.step()``), or by calls of a watched
function (``@jaxscope.watch``) at their beginnings. The first step is 1. If calls are counted, the time before
the first call is step 0. These rules apply to a whole run and to a part of a run (a ``with`` block, a test).
If both ways are possible and give different numbers, both numbers are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from jaxscope.schema.messages import Message, message


class Either(NamedTuple):
    """Two possible numbers of a step (iteration of the training loop), because two ways of counting disagree.

    Attributes:
      least, most: the smaller and the larger number.
      because: why they disagree, as a message to the user.
    """

    least: int
    most: int
    because: Message


Step = int | Either | None  # None: steps are not counted


class Counting(msgspec.Struct, frozen=True):
    """The counts of a run (a recording), or of a part of it, from which the numbers of steps follow.

    Attributes:
      marks: number of calls of ``jaxscope.step()``, which mark the ends of steps.
      calls: number of calls of each watched function, by function id, in the order of the first calls.
      steppers: ids of functions watched with ``step=True``.
    """

    marks: int
    calls: Mapping[str, int]
    steppers: frozenset[str] = frozenset()

    def step(
        self, marks: int, calls: Mapping[str, int], inside: Callable[[str], bool] = lambda _: False
    ) -> Step:
        """Return the number of the training step at a moment of the program. Return an ``Either`` if the
        counts allow two numbers, and None if nothing was counted.

        If the run has step marks, the number is one more than the marks until this moment. Otherwise it is
        the number of calls of a function until this moment: of the function watched with ``step=True`` (of
        several, the one with the most calls), or if there is none, of the first watched function (that was
        called more than once, if any was).

        Args:
          marks: number of step marks until this moment.
          calls: {id of a watched function: number of its calls until this moment}.
          inside: returns whether this moment is during a call of the function with the given id.
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


def single_number(step: Step, n: int) -> int | None:
    """Return ``step`` as a single number, for the question whether the step is after step ``n``. If ``step``
    is an ``Either``, return its smaller number if both numbers are larger than ``n``, and its larger number
    if neither is. Return None if only one of them is larger, or if steps are not counted."""
    if not isinstance(step, Either):
        return step
    return step.least if step.least > n else step.most if step.most <= n else None
