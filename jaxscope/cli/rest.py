"""``jaxscope compile --rest RUN``: what a run asked for and no compiler has answered: its process was killed, or died of it."""

from __future__ import annotations

import os
import shlex
import sys

from jaxscope.cli import targeting
from jaxscope.cli.output import chosen
from jaxscope.log import store
from jaxscope.log.confidential import MARK
from jaxscope.log.jobs import CRASHED, LATE, Queue
from jaxscope.report.escape import escape


def handle(which: str) -> int:
    """Compile it, in ``which`` and the runs within it. 1: something is still not compiled.

    Raises:
      RunNotFound: there is no such run.
      UsageError: the compiler is not installed.
    """
    from jaxscope.model.load import load, state
    from jaxscope.report.targets import waiting as waiting_for

    record = chosen(which)
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
        n = queue.again()
        env = {**os.environ, **{k: v for k, v in run.settings if not k.startswith("-") and MARK not in v}}
        sys.stderr.write(f"jaxscope: {escape(store.address(run))}: {n} left to compile\n")
        queue.beat()
        worker = targeting.begin(run, env)
        if worker is None:
            return 1
        if state(read, run) == "running":  # more may come: it goes on beside the program
            worker.returncode = 0
            continue
        targeting.end(run, worker, wait=True, quiet=False, env=env)
        states = [p.state for p in load(run).retargeted.values()]
        lost += sum(s in (CRASHED, LATE, "abandoned") for s in states)
        done += n
    if not done:
        sys.stderr.write("jaxscope: nothing is left to compile\n")
    else:
        sys.stderr.write(f"see: jaxscope report {escape(shlex.quote(store.address(record)))}\n")
    return 1 if lost else 0
