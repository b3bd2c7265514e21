"""A recorded run, to be asked from code: what ``jaxscope.open_run`` returns."""

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
    concludes from it (``findings``).

    Attributes:
      directory: the run directory.
    """

    directory: store.RunDir | None = None

    def _repr_html_(self) -> str:
        """Return the HTML report, which a notebook shows below the cell."""
        from jaxscope.report import html

        return html.frame(self, self.directory)

    @property
    def findings(self) -> list[contract.Finding]:
        """Return the findings, errors first, then by seconds."""
        return [contract.Finding.of(f) for f in registry.findings(self)]

    @property
    def predictions(self) -> list[predictions.Prediction]:
        """Recompiles that were announced, and what became of them."""
        return predictions.predictions(self)

    @property
    def ledger(self) -> list[ledger.Entry]:
        """Seconds by cause, function and line, the most expensive entry first."""
        return ledger.entries(self)

    def function(self, name: str) -> run_details.FunctionDetail:
        """Return the function called ``name``, as ``jaxscope report --function`` finds it.

        Raises:
          UsageError: nothing matches; the hint lists similar names.
        """
        return run_details.function(self, name)

    def program(self, name: str) -> run_details.ProgramDetail:
        """Return the compiled program of ``train_step#2``; without a number, of the function's latest
        compilation.

        Raises:
          UsageError: there is no such function or compilation, or the call compiled no program.
        """
        return run_details.program(self, name)

    def array(self, name: str) -> run_details.ArrayDetail:
        """Return the array at ``name``, a path such as ``state['w']``, in the snapshot with the most bytes.

        Raises:
          UsageError: nothing matches; the hint lists similar names.
        """
        return run_details.array(self, name)

    def metrics(self) -> list[dict[str, Any]]:
        """Return numbers per step, for dashboards: seconds of compiling, recompiles by cause, bytes.

        There is a row for each step in which something was compiled, or in which a snapshot of the live
        arrays was taken.
        """
        return [msgspec.structs.asdict(row) for row in scalars.rows(self)]

    def causes(self, compilation: Compilation) -> list[contract.Cause]:
        """Return why ``compilation`` was not served from a cache, the decisive cause first; at least one."""
        return [contract.Cause.of(c) for c in causes.of(self, compilation)]


def open_run(which: str | Path | None = "latest") -> Opened:
    """Read a recorded run, given by its directory, by its name, or as ``latest``.

    Raises:
      RunNotFound: there is no such run; the message has similar names.
    """
    run = Opened()
    run.directory = store.one_process(store.find(None if which is None else str(which)))
    load.Tail(run.directory, run).load()
    return run
