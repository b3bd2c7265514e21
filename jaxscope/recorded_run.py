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
    concludes from it (``findings``). ``directory`` is the run directory; None if ``open_run`` did not read
    the run from one, as for the part of a recording that belongs to one test."""

    directory: store.RunDir | None = None

    def _repr_html_(self) -> str:
        """Return the HTML report, which a notebook shows below the cell."""
        from jaxscope.report import html

        return html.frame(self, self.directory)

    @property
    def findings(self) -> list[contract.Finding]:
        """Return the problems that jaxscope's rules find in this run: errors first, then the findings that
        cost the most seconds."""
        return [contract.Finding.of(f) for f in registry.findings(self)]

    @property
    def predictions(self) -> list[predictions.Prediction]:
        """Return the predicted recompiles. Each predicts that a function recompiles if the result of a
        certain call is passed to it again. ``status`` is ``pending``, ``confirmed`` or ``withdrawn``; a later
        call confirms or withdraws the prediction."""
        return predictions.predictions(self)

    @property
    def ledger(self) -> list[ledger.Entry]:
        """Return the seconds of tracing, lowering and compiling, one entry for each cause, function and line
        of the user's code. The most expensive entry is first."""
        return ledger.entries(self)

    def function(self, name: str) -> run_details.FunctionDetail:
        """Return the function called ``name``, as ``jaxscope report --function`` finds it. If there are
        several, prefer the user's functions, then the one with the most seconds.

        Raises:
          UsageError: nothing matches; the hint lists similar names.
        """
        return run_details.function(self, name)

    def program(self, name: str) -> run_details.ProgramDetail:
        """Return the compiled program that ``name`` names. ``train_step#2`` is the program of the second
        compilation of ``train_step``. ``train_step`` is the program of the latest compilation that compiled
        one.

        Raises:
          UsageError: there is no such function or compilation, or it compiled no program.
        """
        return run_details.program(self, name)

    def array(self, name: str) -> run_details.ArrayDetail:
        """Return the live array with the path ``name``, such as ``state['w']``. A run may have several
        snapshots of its live arrays: the one with the most bytes is read.

        Raises:
          UsageError: nothing matches; the hint lists similar names.
        """
        return run_details.array(self, name)

    def metrics(self) -> list[dict[str, Any]]:
        """Return numbers for dashboards: seconds of compiling, recompiles by cause, bytes. There is one dict
        for each step in which something was compiled or a snapshot of the live arrays was taken. Its keys are
        the attributes of ``jaxscope.report.scalars.Row``."""
        return [msgspec.structs.asdict(row) for row in scalars.rows(self)]

    def causes(self, compilation: Compilation) -> list[contract.Cause]:
        """Return why JAX could not serve the call ``compilation`` from a cache, the decisive cause first. The
        list is never empty."""
        return [contract.Cause.of(c) for c in causes.of(self, compilation)]


def open_run(which: str | Path | None = "latest") -> Opened:
    """Read a recorded run and return it. ``which`` is the run directory, the name of the run, the beginning
    of its name, or ``latest``; None means ``latest``, too.

    Raises:
      RunNotFound: there is no such run; the message has similar names.
    """
    run = Opened()
    run.directory = store.one_process(store.find(None if which is None else str(which)))
    load.Tail(run.directory, run).load()
    return run
