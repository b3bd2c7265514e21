"""Record a program that imports jaxscope and is started as ``JAXSCOPE=record python train.py``.

The recording begins when the program imports jax; nothing is written before. Jaxscope does not import jax
itself, because a program may set XLA_FLAGS between its imports of jaxscope and jax.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from typing import Any

VARIABLE = "JAXSCOPE"
MODES = ("record", "live")


def _begin() -> None:
    """Start a recording when jax is imported, or at once if jax is imported already.

    The environment variable JAXSCOPE must be ``record`` or ``live``; with ``live``, recompiles are also
    printed while the program runs. For another value, print a message and record nothing.
    """
    mode = os.environ.get(VARIABLE, "")
    if mode not in MODES:
        _say(f"{VARIABLE}={mode} is not one of {', '.join(MODES)}; not recording")
        return
    atexit.register(_end)  # now, so that it runs after the handlers that the program registers
    if "jax" in sys.modules:
        _record()
    else:
        from jaxscope.launch.boot import _jaxscope_when_jax

        when: Any = _jaxscope_when_jax
        sys.meta_path.insert(0, when.WhenJaxIsImported(_record))


def _record() -> None:
    """Start recording into the directory in JAXSCOPE_RUN, which a parent process that records has set, or
    else into a new directory, whose path is printed. Print a message if the recording cannot start."""
    mode = os.environ.get(VARIABLE)
    if mode not in MODES:
        return
    try:
        from jaxscope.capture import session
        from jaxscope.launch import job

        own_run = session.RUN_VARIABLE not in os.environ  # else jaxscope run, or a parent process, created it
        if own_run:
            name = os.path.splitext(os.path.basename(sys.argv[0] or "session"))[0]  # noqa: PTH119, PTH122
            made = job.create_run(None, job.here(), name=name or "session", how="env", argv=list(sys.argv))
            os.environ[session.RUN_VARIABLE] = str(made.path)
        active = session.start_from_environment("env" if own_run else "run")
        atexit.unregister(session.stop)
        if own_run and active is not None:
            _say(f"recording to {active.run.path}")
            if mode == "live":
                _follow(str(active.run.path))
    except Exception as e:
        _say(f"not recording: {e}")


def _end() -> None:
    """End the recording when Python exits, after the exit handlers of the program."""
    session: Any = sys.modules.get("jaxscope.capture.session")
    if session is not None:
        session.stop("exit")


def _follow(directory: str) -> None:
    """Start a process that prints a line to stderr for each recompile in the recording ``directory``. The new
    process is no child of this process, but ends when this process ends."""
    words = [sys.executable, "-m", "jaxscope", "_follow", directory, str(os.getpid())]
    env = {k: v for k, v in os.environ.items() if k not in (VARIABLE, "JAXSCOPE_RUN")}
    # A shell that ends at once starts the process: a program that waits for all its children would otherwise
    # never end.
    # fmt: off
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", *words],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, check=False,
    )
    # fmt: on


def _say(text: str) -> None:
    """Print ``jaxscope: text`` to stderr, if stderr is open."""
    try:
        sys.stderr.write(f"jaxscope: {text}\n")
    except Exception:  # the program must not be affected
        pass
