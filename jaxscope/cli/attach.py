"""``jaxscope run --tui``: the program under a keeper, the view in front of it, and how they part.

The keeper owns the program from the start, so that whatever becomes of the view the program goes on.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from jaxscope.launch import keeper
from jaxscope.launch.keeper import Kept
from jaxscope.launch.vitals import Ended
from jaxscope.log.store import RunDir

PATIENCE_S = ((signal.SIGINT, 10.0), (signal.SIGTERM, 20.0))
LOOK_S = 0.1
GRACE_S = 3.0  # between the program's end and the keeper's word on it

GOES_ON = "goes on without this terminal"


def attach(argv: list[str], env: dict[str, str], run: RunDir) -> Ended | str:
    """Start it, show it. How it ended; or, where it goes on, in which words to say so.

    Raises:
      JaxscopeError: the program could not be started.
    """
    kept = keeper.start(argv, env, run)  # it forks: before anything here begins a thread
    from jaxscope.cli.view import show

    try:
        asked = show(run, owned=True)
    except Exception as e:  # the view is ours, the program is not
        sys.stderr.write(f"jaxscope: the view ended with {type(e).__name__}: {e}\n")
        asked = "detach"
    if asked == "stop":
        return _stop(kept, run)
    if asked == "detach":
        return GOES_ON
    return _end(run, kept, GRACE_S if not _alive(kept.program) else 0.0) or GOES_ON


def _stop(kept: Kept, run: RunDir) -> Ended | str:
    """As Ctrl-C would, then as ``kill`` would; never SIGKILL: that is for the user to decide."""
    for number, patience in PATIENCE_S:
        sys.stderr.write(f"jaxscope: {number.name} sent; waiting for the program to end\n")
        try:
            os.killpg(kept.program, number)  # the keeper gave it a process group of its own
        except ProcessLookupError:
            pass
        except OSError as e:
            return f"could not be stopped ({e.strerror})"
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if not _alive(kept.program):
                return _end(run, kept, GRACE_S) or "has ended, but nobody saw how"
            time.sleep(LOOK_S)
    return f"does not listen to SIGINT or SIGTERM and goes on: kill -9 {kept.program}"


def _end(run: RunDir, kept: Kept, patience: float) -> Ended | None:
    """What the keeper wrote of the program's end; None: nothing, after ``patience`` seconds."""
    from jaxscope.model.load import load

    until = time.monotonic() + patience
    while True:
        exited = load(run).exited
        if exited is not None:
            return Ended(kept.program, exited.exit_code, exited.signal, exited.seconds or 0.0)
        if time.monotonic() >= until:
            return None
        time.sleep(LOOK_S)


def _alive(pid: int) -> bool:
    """The keeper reaps it at once: no zombie stays."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
