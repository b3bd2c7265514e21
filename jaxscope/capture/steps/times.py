"""Write when training steps ended, and how long copies between host and devices had taken until then.

The first steps are all written. Later, a step is written only when the number of steps has grown by a
quarter: about forty of 10,000 steps are written.
"""

from __future__ import annotations

import threading
import time

from jaxscope.capture import shield
from jaxscope.capture.steps.tracker import StepTracker
from jaxscope.capture.transfers.by_line import GROWN, Transfers
from jaxscope.schema.events import StepTimed


class StepTimes:
    """Writes the times at which the training steps of one recording ended.

    Args:
      tracker: counts the steps.
      transfers: counts the copies between host and devices; None: they are not counted.
    """

    def __init__(self, tracker: StepTracker, transfers: Transfers | None) -> None:
        self._tracker = tracker
        self._transfers = transfers
        self._due = 0

    def step_ended(self, step: int) -> int:
        """Log that the training step number ``step`` has ended now, and how long the copies so far have
        taken, if this step is one of those that are logged. Return after how many more steps this method is
        to be called again."""
        if step >= self._due:
            self._due = int(step * GROWN) + 1
            shield.attempt("step_times", self._write, step)
        return self._due - step

    def _write(self, step: int) -> None:
        """Log all copies so far and then the event ``StepTimed`` for the end of the training step
        ``step``."""
        now = time.perf_counter_ns()
        if self._transfers is not None:
            self._transfers.step_thread = threading.get_ident()
            self._transfers.flush()
        self._tracker.writer.emit(StepTimed(step=step, marked=self._tracker.marked, clock_ns=now))
