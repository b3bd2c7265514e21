"""What the verbs do for ``--target``: names to targets, the compiler's worker, the wait for it.

Everything that takes time to import is imported when a target is asked for.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from jaxscope.errors import JaxscopeError, UsageError
from jaxscope.log.store import RunDir

PROGRESS_S = 0.2


def wanted(names: Sequence[str]) -> list[Any]:
    """The targets of ``--target``, each once.

    Raises:
      UsageError: a name that is none, targets of different sizes, or a compiler that is not installed.
    """
    if not names:
        return []
    from jaxscope.analysis import machines

    found: list[Any] = []
    for name in names:
        target = machines.parse(name)
        installed(target.platform, target.name)
        if target not in found:
            found.append(target)
    sizes = sorted({t.devices for t in found})
    if len(sizes) > 1:
        told = ", ".join(f"{t.name} {t.devices:,}" for t in found)
        raise UsageError(
            f"a run has one number of devices: {told}",
            hint="run it once for each number",
            slug="target-sizes",
        )
    return found


def installed(platform: str, name: str) -> None:
    """
    Raises:
      UsageError: the compiler for ``platform`` is not here; the hint installs it.
    """
    from jaxscope.targets import client

    lacking = client.missing(platform)
    if lacking is not None:
        what, _, command = lacking.partition(": ")
        raise UsageError(f"{name}: {what}", hint=command, slug="no-compiler")


def as_options(targets: Sequence[Any]) -> list[dict[str, Any]]:
    """For the recording's options, which are JSON."""
    import msgspec

    return [msgspec.to_builtins(t) for t in targets]


def force(env: dict[str, str], targets: Sequence[Any]) -> int | None:
    """As many CPU devices as the targets have; None where the environment has a number of its own."""
    from jaxscope.launch import forced

    return forced.force(env, targets[0].devices)


def begin(record: RunDir) -> subprocess.Popen[bytes] | None:
    """Start the worker that compiles what the program will queue. None, with a word, where it cannot be."""
    from jaxscope.targets import worker

    try:
        return worker.start(record)
    except OSError as e:
        sys.stderr.write(f"jaxscope: nothing is compiled for the target: {e.strerror or e}\n")
        return None


def end(record: RunDir, worker: subprocess.Popen[bytes], *, wait: bool, quiet: bool) -> None:
    """The program is over: no more jobs. ``wait`` for what is left; Ctrl-C leaves it to go on alone."""
    from jaxscope.log.jobs import Queue

    queue = Queue(record)
    queue.close()
    if not wait:
        worker.returncode = 0  # it goes on without us: subprocess would complain of that
        return
    said = -1
    try:
        while worker.poll() is None:
            left = len(queue.waiting())
            if left and left != said and not quiet:
                sys.stderr.write(f"jaxscope: {left} left to compile for the target\n")
                said = left
            time.sleep(PROGRESS_S)
    except KeyboardInterrupt:
        worker.returncode = 0


def compiled(record: RunDir, worker: subprocess.Popen[bytes]) -> None:
    """Wait for everything that is queued in ``record``.

    Raises:
      JaxscopeError: the worker ended without it.
    """
    from jaxscope.log.jobs import Queue

    queue = Queue(record)
    queue.close()
    code = worker.wait()
    if queue.waiting():
        raise JaxscopeError(f"the compiler's keeper ended with exit code {code}", slug="target-worker")
