"""Find the step (iteration of the training loop) in which a compilation took place.

``schema.steps`` explains how steps are counted.
"""

from __future__ import annotations

from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run
from jaxscope.schema.steps import Counting, Either, Step


class Steps:
    """Finds the training step of each compilation of a run. Events that are added to the run after this
    object is created are not used."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._main = run.main
        self._numbered = {c.process.id for c in run.compilations.values() if c.step is not None}
        self._counting = {p.id: _counting(run, p) for p in run.processes.values()}

    def known(self, process: Process) -> bool:
        """Return whether ``process`` counted steps of the training loop."""
        counting = self._counting[process.id]
        return bool(counting.marks or counting.calls) or process.id in self._numbered

    def of(self, c: Compilation) -> Step:
        """Return the number of the step (iteration of the training loop) in which ``c`` took place: an
        ``Either`` if the counts allow two numbers, None if steps were not counted. If the process of ``c``
        counts no steps itself, return the step of the main process at the time of ``c``."""
        process, main = c.process, self._main
        counting = self._counting[process.id]
        if counting.marks or counting.calls:
            return self._own(c, counting)
        if main is not None and main is not process and self.known(main):
            steps = [s for s in (c.missed.main_step if c.missed else None, c.step) if s is not None]
            return max(steps, default=None)
        return (c.step or 0) if self.known(process) else None

    def _own(self, c: Compilation, counting: Counting) -> Step:
        """Return the training step of ``c`` as the process of ``c`` counted it, or an ``Either`` if the
        counts allow two numbers. ``counting`` has the marks (``jaxscope.step()``) and calls of watched
        functions in this process."""
        if counting.marks and not c.marks and c.step is not None and c.process.first_step != 1:
            return c.step  # the beginning of the log is missing
        before = (c.process.started.steps or 0) if c.process.started is not None else 0
        step = counting.step(c.marks, c.calls, lambda f: within_call(self._run, c, f)) or 0
        if isinstance(step, Either):
            return step._replace(least=step.least + before, most=step.most + before)
        return step + before if counting.marks else max(step + before, c.step or 0)


def _counting(run: Run, process: Process) -> Counting:
    """Return what ``process`` counted: the marks (calls of ``jaxscope.step()``, at the ends of steps), and
    the calls of watched functions (functions whose calls are counted)."""
    calls = {f: run.functions[f].counted_calls.get(process.id, 0) for f in process.calls}
    steppers = frozenset(f for f in calls if run.functions[f].step)
    return Counting(process.step or 0, {f: n for f, n in calls.items() if n}, steppers)


def within_call(run: Run, c: Compilation, function: str) -> bool:
    """Return whether call ``c`` is a call of ``function`` (an id), or was made while this function ran."""
    if c.function.id == function:
        return True
    outer = run.functions.get(function)
    if outer is None:
        return False
    name = outer.seen.file, outer.seen.qualname
    return any((f.file, f.function) == name for f in c.lines)
