"""Which step of the program a compilation belongs to.

Steps count from 1. With marks (``jaxscope.step()``), step k is what ran until the k-th mark; without, step k
begins at the k-th call of the step function, and what came before the first call is step 0.
"""

from __future__ import annotations

from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run


class Steps:
    """The steps of a finished reading of ``run``: ask anew where the run has grown."""

    def __init__(self, run: Run) -> None:
        known = {c.process.id for c in run.compilations.values() if c.step is not None}
        for f in run.functions.values():
            if f.watched:
                known.update(process for process, calls in f.counted_calls.items() if calls)
        self._known = known | {p.id for p in run.processes.values() if p.step is not None}

    def known(self, process: Process) -> bool:
        """Did anything count the steps of ``process``?"""
        return process.id in self._known

    def of(self, c: Compilation) -> int | None:
        """The step of ``c``; None where nothing counted the steps of its process."""
        if c.process.first_step == 1 and not c.marked:
            return 1  # no mark was known when it was told: it may have been counted by calls, or not at all
        return (c.step or 0) if self.known(c.process) else None
