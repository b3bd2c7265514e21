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
    concludes from these records (``findings``). ``directory`` is the run directory that ``open_run`` has
    read; None if another function made the object, for example for one test."""

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
        """Return the predicted recompiles of the user's functions, in order of time. A predicted recompile
        happens if the result of a call is passed to the same function again, as in ``state = step(state)``.
        Its ``status`` is ``pending``, ``confirmed`` or ``withdrawn`` (by a later call); None if the run ended
        before this was known."""
        return predictions.predictions(self)

    @property
    def ledger(self) -> list[ledger.Entry]:
        """Return the seconds of tracing, lowering and compiling, summed for each cause, function of the user
        and line of the user's code. The entry with the most seconds is first. Operations outside jit and
        functions of libraries are not told apart: their ``function`` is None."""
        return ledger.entries(self)

    def function(self, name: str) -> run_details.FunctionDetail:
        """Return the function called ``name``: a name (``train_step``, ``Model.loss``), the end or a part of
        a name, ``train.py:12``, or the function's id. If several functions match, functions of the user go
        before functions of libraries, and then the function with the most seconds of compiling is returned.

        Raises:
          UsageError: no function matches; the hint lists similar names.
        """
        return run_details.function(self, name)

    def program(self, name: str) -> run_details.ProgramDetail:
        """Return a compiled program of a function: ``train_step`` means its latest program, and
        ``train_step#2`` the program of its compilation number 2. A call that was only traced or lowered has a
        number, too, but no program.

        Raises:
          UsageError: there is no such function or number, or this compilation has no recorded program.
        """
        return run_details.program(self, name)

    def array(self, name: str) -> run_details.ArrayDetail:
        """Return the live array that the variable ``name`` refers to, such as ``state['w']``. Only the
        snapshot of live arrays that the report shows is searched, usually the one with the most bytes.

        Raises:
          UsageError: no array has this name; the hint lists similar names, or some names.
        """
        return run_details.array(self, name)

    def metrics(self) -> list[dict[str, Any]]:
        """Return numbers for dashboards: seconds of compiling, recompiles by cause, bytes. There is one dict
        for each step with a trace, lowering, compilation or snapshot of the live arrays, in order of time.
        What happened while no steps were counted is one dict. The keys are the attributes of
        ``jaxscope.report.scalars.Row``."""
        return [msgspec.structs.asdict(row) for row in scalars.rows(self)]

    def causes(self, compilation: Compilation) -> list[contract.Cause]:
        """Return the reasons why the call ``compilation`` was not found in JAX's caches, the decisive reason
        first. The list is never empty."""
        return [contract.Cause.of(c) for c in causes.of(self, compilation)]


def open_run(which: str | Path | None = "latest") -> Opened:
    """Read a recorded run and return it. If the run is a job of several processes, one process is read: the
    first that recorded events.

    ``which`` is a run directory, the name of a run in ``.jaxscope/runs`` or the beginning of its directory's
    name, ``RUN/NAME`` for a run inside another, or an address such as ``s3://bucket/run``. ``latest`` (or
    None) means the newest run that recorded something.

    Raises:
      RunNotFound: there is no such run, or several names begin with ``which``; the hint has similar names.
      JaxscopeError: the remote store cannot be read.
    """
    run = Opened()
    run.directory = store.one_process(store.find(None if which is None else str(which)))
    load.Tail(run.directory, run).load()
    return run
