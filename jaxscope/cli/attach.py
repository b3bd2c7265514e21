"""``jaxscope run`` in a terminal: start the program, show the terminal interface while the program runs, and
decide what happens to the program when the interface closes.

From its start, the program is a child of a separate process, the keeper (``launch.keeper``). So the program
continues if the interface closes or fails.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import NamedTuple

from jaxscope.launch import keeper
from jaxscope.launch.keeper import Kept
from jaxscope.launch.program_events import Ended
from jaxscope.log import files, liveness
from jaxscope.log.store import RunDir

PATIENCE_S = ((signal.SIGINT, 10.0), (signal.SIGTERM, 20.0))
LOOK_S = 0.1
MOST_AT_ONCE = 4 << 20  # bytes of the program's output that are copied at a time
GRACE_S = 3.0  # how long after the program's end the keeper may need to write the exit code


class Left(NamedTuple):
    """What ``attach`` returns if the program still runs, or if it has ended and its exit code is unknown.

    Attributes:
      words: what happened to the program, for a message that begins with the program's name: ``keeps running
        without this terminal``.
      code: the exit code with which jaxscope ends.
    """

    words: str
    code: int = 0


GOES_ON = Left("keeps running without this terminal")
UNSEEN = Left("has ended; its exit code is unknown", 1)


def attach(argv: list[str], env: dict[str, str], run: RunDir) -> Ended | Left:
    """Start the command ``argv`` with the environment ``env``, record it into ``run``, and show the terminal
    interface until it closes. Return how the program ended; ``Left`` if it still runs, or if its exit code is
    unknown.

    If the interface fails, wait for the end of the program, and print its output on stdout.

    Raises:
      JaxscopeError: the program could not be started.
    """
    kept = keeper.start(argv, env, run)  # it forks: before anything here begins a thread
    from jaxscope.cli.view import TERMINATED, show

    try:
        answer = show(run, owned=True, alive=lambda: liveness.is_running(kept.program))
    except Exception as e:  # an error of the interface must not end the program
        sys.stderr.write(f"jaxscope: {type(e).__name__}: {e}\n  the program continues; its output follows\n")
        return _accompany(kept, run)
    if answer == "stop":
        return _stop(kept, run)
    if answer == "terminated" and liveness.is_running(kept.program):
        return GOES_ON._replace(code=TERMINATED)
    if answer == "detach" or liveness.is_running(kept.program):
        return GOES_ON
    return _end(run, kept)


def _accompany(kept: Kept, run: RunDir) -> Ended | Left:
    """Print the program's output until it ends, after the terminal interface has failed. Return how it ended;
    ``Left`` if its exit code is unknown. Ctrl-C is sent on to the program, which is in another session."""
    offset = 0
    while True:
        try:
            going = liveness.is_running(kept.program)
            with files.open_regular(run.output, within=run.path) as f:
                f.seek(offset)
                data = f.read(MOST_AT_ONCE)
            offset += len(data)
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            if not going and len(data) < MOST_AT_ONCE:
                return _end(run, kept)
            time.sleep(LOOK_S)
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):
                os.killpg(kept.program, signal.SIGINT)


def _stop(kept: Kept, run: RunDir) -> Ended | Left:
    """Stop the program with SIGINT, then with SIGTERM; never with SIGKILL, which only the user may decide.
    Return how it ended; ``Left`` if it has not ended, or if its exit code is unknown."""
    for number, patience in PATIENCE_S:
        sys.stderr.write(f"jaxscope: {number.name} sent; waiting for the program to end\n")
        try:
            os.killpg(kept.program, number)  # the keeper gave it a process group of its own
        except ProcessLookupError:
            pass
        except OSError as e:
            return Left(f"could not be stopped ({e.strerror})", 1)
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if not liveness.is_running(kept.program):
                return _end(run, kept)
            time.sleep(LOOK_S)
    return Left(f"does not react to SIGINT or SIGTERM and continues: kill -9 {kept.program}", 1)


def _end(run: RunDir, kept: Kept) -> Ended | Left:
    """Return how the program ended, which its parent process (the keeper) writes into the log of ``run``.
    Return UNSEEN if it is not written within GRACE_S seconds."""
    from jaxscope.model.load import load

    until = time.monotonic() + GRACE_S
    while True:
        exited = load(run).exited
        if exited is not None:
            return Ended(kept.program, exited.exit_code, exited.signal, exited.seconds or 0.0)
        if time.monotonic() >= until:
            return UNSEEN
        time.sleep(LOOK_S)
