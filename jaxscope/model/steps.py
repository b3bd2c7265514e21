"""Which step of the program a compilation belongs to (what a step is: ``schema.steps``)."""

from __future__ import annotations

from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run
from jaxscope.schema.steps import Counting, Either, Step


class Steps:
    """The steps of a finished reading of ``run``: ask anew where the run has grown."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._main = run.main
        self._numbered = {c.process.id for c in run.compilations.values() if c.step is not None}
        self._counting = {p.id: _counting(run, p) for p in run.processes.values()}

    def known(self, process: Process) -> bool:
        """Did anything count the steps of ``process``?"""
        counting = self._counting[process.id]
        return bool(counting.marks or counting.calls) or process.id in self._numbered

    def of(self, c: Compilation) -> Step:
        """The step of ``c``; None where nothing counted the steps of its process.

        A process that counts none itself is in the step of the program's first process.
        """
        process, main = c.process, self._main
        counting = self._counting[process.id]
        if counting.marks or counting.calls:
            return self._own(c, counting)
        if main is not None and main is not process and self.known(main):
            steps = [s for s in (c.missed.main_step if c.missed else None, c.step) if s is not None]
            return max(steps, default=None)
        return (c.step or 0) if self.known(process) else None

    def _own(self, c: Compilation, counting: Counting) -> Step:
        if counting.marks and not c.marks and c.step is not None and c.process.first_step != 1:
            return c.step  # the log has lost its beginning
        before = (c.process.started.steps or 0) if c.process.started is not None else 0
        step = counting.step(c.marks, c.calls, lambda f: within_call(self._run, c, f)) or 0
        if isinstance(step, Either):
            return step._replace(least=step.least + before, most=step.most + before)
        return step + before if counting.marks else max(step + before, c.step or 0)


def _counting(run: Run, process: Process) -> Counting:
    calls = {f: run.functions[f].counted_calls.get(process.id, 0) for f in process.calls}
    steppers = frozenset(f for f in calls if run.functions[f].step)
    return Counting(process.step or 0, {f: n for f, n in calls.items() if n}, steppers)


def within_call(run: Run, c: Compilation, function: str) -> bool:
    """Is ``c`` a call of ``function`` (an id), or was it made while a call of it ran?"""
    if c.function.id == function:
        return True
    of = run.functions.get(function)
    above = [c.missed.site, *c.missed.stack] if of is not None and c.missed is not None else []
    return any(
        of is not None
        and frame is not None
        and (frame.file, frame.function) == (of.seen.file, of.seen.qualname)
        for frame in above
    )
