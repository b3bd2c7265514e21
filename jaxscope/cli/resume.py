"""``jaxscope compile --rest RUN``: compile the programs that a run has no result for, because the compiler's
process ended too early."""

from __future__ import annotations

import os
import shlex
import sys

from jaxscope.cli import targeting
from jaxscope.cli.output import chosen
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.log.jobs import CRASHED, LATE, Queue
from jaxscope.log.secret_values import MARK
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape

COMPILER_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


def handle(run_name: str) -> int:
    """Compile the programs of the run ``run_name``, and of the runs inside its directory, that have no result
    yet for their targets (accelerators of other machines). A run for which another process compiles now is
    skipped. Return 1 if the compiler's process cannot start, or if it crashed, took too long or ended again;
    else 0.

    Raises:
      RunNotFound: there is no such run.
      UsageError: the compiler is not installed, or its environment variables differ from the run's.
    """
    from jaxscope.model.load import load, state
    from jaxscope.present.targets import waiting as waiting_for

    record = chosen(run_name)
    runs = [record, *store.sub_runs(record)]
    done = lost = 0
    for run in runs:
        read = load(run)
        queue = Queue(run)
        waiting, abandoned = queue.waiting(), queue.abandoned()
        if waiting and not abandoned:
            behind = queue.behind()
            doing = waiting_for(behind) if behind else "being compiled"
            sys.stderr.write(f"jaxscope: {escape(store.address(run))} is {doing}\n")
            continue
        if not waiting and not queue.lost():
            continue
        for t in read.targets:
            targeting.installed(t.platform, t.name)
        require_same_flags(run, run_name)
        n = queue.again()
        sys.stderr.write(f"jaxscope: {escape(store.address(run))}: {n} left to compile\n")
        queue.beat()
        worker = targeting.begin(run, dict(os.environ))
        if worker is None:
            return 1
        if state(read, run) == "running":  # the worker continues while the program may add jobs
            worker.returncode = 0
            continue
        targeting.end(run, worker, wait=True, quiet=False, env=dict(os.environ))
        states = [p.state for p in load(run).retargeted.values()]
        lost += sum(s in (CRASHED, LATE, "abandoned") for s in states)
        done += n
    if not done:
        sys.stderr.write("jaxscope: nothing is left to compile\n")
    else:
        sys.stderr.write(f"see: jaxscope report {escape(shlex.quote(store.address(record)))}\n")
    return 1 if lost else 0


def require_same_flags(run: RunDir, run_name: str) -> None:
    """Check that the compiler's environment variables have the values recorded in ``run``. ``run_name`` is
    the name of the run on the command line, for the hint.

    Raises:
      UsageError: a variable differs; the hint is the command that sets it.
    """
    # They are not set here: the run may be another person's, and flags can make the compiler write files.
    for name, value in run.settings:
        if name in COMPILER_VARIABLES and MARK not in value and os.environ.get(name, "") != value:
            raise UsageError(
                f"{store.address(run)} was recorded with {name}={value}, which is not set now",
                hint=f"if you trust it: {name}={shlex.quote(value)} jaxscope compile --rest"
                f" {shlex.quote(run_name)}",
                slug="rest-flags",
            )
