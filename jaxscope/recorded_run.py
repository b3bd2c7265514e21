"""Read a recorded run from Python code: ``jaxscope.open_run``, and the class of its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from jaxscope import run_details
from jaxscope.log import store
from jaxscope.model import causes, ledger, load, predictions
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.report import contract, scalars
from jaxscope.rules import registry


class Opened(Run):
    """A recorded run: what was recorded (``functions``, ``compilations``, ``programs``), and what jaxscope
    concludes from it (``findings``). ``directory`` is the run directory that ``open_run`` has read; None for
    a run that was not read by ``open_run``, such as that of one test."""

    directory: store.RunDir | None = None

    def _repr_html_(self) -> str:
        """Return the HTML report, which a notebook shows below the cell."""
        from jaxscope.report import html

        return html.frame(self, self.directory)

    @property
    def findings(self) -> list[contract.Finding]:
        """Return the findings of jaxscope's rules in this run, in the order of reports: errors first. Rules
        that need a limit from the user are left out."""
        return [contract.Finding.of(f) for f in registry.findings(self)]

    @property
    def predictions(self) -> list[predictions.Prediction]:
        """Return the predicted recompiles. Each happens if the result of a certain call is passed to the same
        function again. ``status`` is ``pending``, ``confirmed`` or ``withdrawn`` (by a later call); None if
        the run ended before another call."""
        return predictions.predictions(self)

    @property
    def ledger(self) -> list[ledger.Entry]:
        """Return the seconds of tracing, lowering and compiling, one entry for each combination of cause,
        function and line of the user's code. The entry with the most seconds is first."""
        return ledger.entries(self)

    def function(self, name: str) -> run_details.FunctionDetail:
        """Return the function called ``name``, as ``jaxscope report --function`` finds it. Of several, the
        user's functions have precedence, then the one with the most seconds.

        Raises:
          UsageError: no function matches; the hint lists similar names.
        """
        return run_details.function(self, name)

    def program(self, name: str) -> run_details.ProgramDetail:
        """Return a compiled program. The name ``train_step#2`` means the program of the second compilation of
        ``train_step``; ``train_step`` means the program of the latest compilation that has one.

        Raises:
          UsageError: there is no such function or compilation, or it compiled no program.
        """
        return run_details.program(self, name)

    def array(self, name: str) -> run_details.ArrayDetail:
        """Return the live array with the path ``name``, such as ``state['w']``, in the snapshot of live
        arrays that the report shows.

        Raises:
          UsageError: no array matches; the hint lists similar names.
        """
        return run_details.array(self, name)

    def metrics(self) -> list[dict[str, Any]]:
        """Return numbers for dashboards: seconds of compiling, recompiles by cause, bytes. There is one dict
        for each step with a trace, lowering, compilation or snapshot of the live arrays, in order of time.
        What happened while no steps were counted is one dict. The keys are the attributes of
        ``jaxscope.report.scalars.Row``."""
        return [msgspec.structs.asdict(row) for row in scalars.rows(self)]

    def causes(self, compilation: Compilation) -> list[contract.Cause]:
        """Return the reasons why JAX could not serve the call ``compilation`` from a cache, the main one
        first. Never empty."""
        return [contract.Cause.of(c) for c in causes.of(self, compilation)]


def open_run(which: str | Path | None = "latest") -> Opened:
    """Read a recorded run and return it. ``which`` is the run directory, the name of the run, the beginning
    of its directory's name, ``RUN/NAME`` for a run inside another, an address such as ``s3://bucket/run``, or
    ``latest``; None means ``latest``, too. Of a job of several processes, one process is read: the first that
    recorded events.

    Raises:
      RunNotFound: there is no such run, or several names begin with ``which``; the hint has similar names.
      JaxscopeError: the remote store cannot be read.
    """
    run = Opened()
    run.directory = store.one_process(store.find(None if which is None else str(which)))
    load.Tail(run.directory, run).load()
    return run
