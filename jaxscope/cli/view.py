"""``jaxscope view``: open the terminal interface for a run that has ended or is in progress."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from jaxscope.cli import config
from jaxscope.cli.output import chosen, read_run
from jaxscope.errors import JaxscopeError
from jaxscope.log import store
from jaxscope.log.store import RunDir

TERMINATED = 128 + signal.SIGTERM

DESCRIPTION = """\
Open a run in the terminal interface: what JAX compiles now, every function with its compilations and their
causes, source lines next to StableHLO and HLO, collectives, live arrays, findings and the program's output.
If the run is not finished, the view updates while it continues; leaving the view does not stop the run.
Without a terminal, the command prints the text report.
"""
EXAMPLES = """\
examples:
  jaxscope view                            the latest run
  jaxscope view train-20260102-0304        a run by name (or the beginning of it), or its directory
keys: 1 to 7 open the screens, ? explains the selected pane, ctrl+p lists all commands, q or Ctrl-C leaves
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope view`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "view", help="the terminal interface", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its directory, or latest (default)"
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope view``: open the terminal interface; without a terminal, print the text report. Return
    TERMINATED if a signal or the closing of the terminal ended the interface, else 0."""
    directory = (begun() if args.run in (None, "latest") else None) or chosen(args.run)
    if not on_a_terminal():
        sys.stderr.write("jaxscope: no terminal to show the view in; this is the text report\n")
        return _report(directory)
    return TERMINATED if show(directory) == "terminated" else 0


def begun() -> RunDir | None:
    """Return the newest run if its program is running and has not imported jax yet; else None. ``latest``
    would skip this run."""
    runs = store.all_runs()
    if not runs or runs[-1].recorded:
        return None
    from jaxscope.model.load import state
    from jaxscope.model.run import Run

    return runs[-1] if state(Run(), runs[-1]) == "running" else None


def on_a_terminal() -> bool:
    """Return whether the terminal interface can be drawn: stdin, stdout and stderr are terminals, and TERM is
    not empty, ``dumb`` or ``unknown``."""
    if os.environ.get("TERM", "").strip() in ("", "dumb", "unknown"):
        return False
    return all(s is not None and s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


def by_default() -> bool:
    """Return whether ``jaxscope run`` opens the terminal interface without an option: if this process is in
    the foreground of a terminal, and neither in CI nor in a notebook."""
    if not on_a_terminal():
        return False
    if os.environ.get("CI") or "JPY_PARENT_PID" in os.environ:  # a notebook's `!command` runs on a terminal
        return False
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def show(directory: RunDir, *, owned: bool = False, alive: Callable[[], bool] | None = None) -> str | None:
    """Show the terminal interface until it closes. Return ``terminated`` if this process got SIGTERM or the
    terminal was closed, ``detach`` or ``stop`` if the user let the running program continue or end, and None
    otherwise.

    Args:
      directory: the directory of the run.
      owned: whether this process started the program, so that the user is asked whether a running program
        continues.
      alive: returns whether the program still runs; None: only the recording shows this.

    Raises:
      JaxscopeError: the interface failed; Textual printed the reason on stderr.
    """
    keys = config.load().values.get("keys", {})
    from jaxscope.tui.app import App

    app = App(directory, owned=owned, alive=alive, keys=keys)
    if sys.__stderr__ is not None:  # a terminal over ssh shows UTF-8, whatever the locale is named
        sys.__stderr__.reconfigure(encoding="utf-8")
    try:
        app.run()
    except Exception as e:
        if app.return_value is None:
            raise
        with contextlib.suppress(OSError):  # the terminal may be the reason of the failure
            sys.stderr.write(f"jaxscope: the view failed while it closed: {type(e).__name__}: {e}\n")
    finally:
        app.last_resort.cancel()
    if app.return_code and app.return_value is None:
        words = f": {type(app.failed).__name__}: {app.failed}"[:300] if app.failed is not None else ""
        raise JaxscopeError(
            f"the terminal interface ended with an internal error{words}",
            hint=f"the same as text: jaxscope report {directory.path};"
            f" JAXSCOPE_DEBUG=1 shows where it failed",
            slug="view-crashed",
        )
    return app.return_value


def _report(directory: RunDir) -> int:
    from jaxscope.report.console import console
    from jaxscope.report.text import render

    run = read_run(directory)
    render(run, console(sys.stdout), directory)
    return 0
