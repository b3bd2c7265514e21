"""``jaxscope run --target``: parse the names of targets (accelerators that need not exist here), start the
worker process that compiles for them, wait for it.

Modules that take long to import are imported only when there is a target.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxscope.cli.stderr import print_message
from jaxscope.errors import UsageError
from jaxscope.launch.program_events import Ended
from jaxscope.log.store import RunDir

if TYPE_CHECKING:
    from jaxscope.log.jobs import Queue

PROGRESS_S = 0.2
RESTARTS = 3  # how often a worker is started again that ends without having compiled anything
# How many threads XLA's CPU backend has ("XLAEigen", jaxlib 0.10.2 and 0.12.0). With more devices, the
# threads of a step with several collectives may all wait for devices without a thread; XLA then aborts the
# process after 40 s.
THREADS = 256
_DRY = (
    "with --dry-run the script ends before its step runs (name the step with --step-function or"
    " watch(step=True))"
)


def grouped(names: Sequence[str]) -> list[list[Any]]:
    """Return the targets (accelerators to compile for) with these names as a list of groups (lists of
    ``Target``). The targets of a group differ, and have the same number of devices.

    Raises:
      UsageError: a name is unknown, or its compiler is not installed.
    """
    if not names:
        return []
    from jaxscope.analysis import machines

    found: dict[int, list[Any]] = {}
    for name in names:
        target = machines.parse(name)
        installed(target.platform, target.name)
        together = found.setdefault(target.devices, [])
        if target not in together:
            together.append(target)
    return list(found.values())


def of_options(opts: argparse.Namespace) -> list[list[Any]]:
    """Return the targets of ``jaxscope run``, grouped as ``grouped`` returns them. Print a warning if XLA may
    hang because the program runs on as many CPU devices as a target has devices.

    Raises:
      UsageError: a target is unknown or its compiler is not installed, or ``--dry-run`` is given without a
        target.
    """
    groups = grouped(opts.target or [])
    if opts.dry_run and not groups:
        raise UsageError(
            "--dry-run needs a target to compile for",
            hint="add one, for example --target v5e:4x4",
            slug="usage",
        )
    many = max((targets[0].devices for targets in groups), default=0)
    if many > THREADS and not opts.dry_run and not opts.quiet:
        print_message(
            f"a step with several collectives on {many:,} CPU devices may hang:"
            f" XLA has {THREADS} threads for them and"
            " aborts the process after 40 s",
            f"programs lowered before that are still compiled for the target; {_DRY}",
        )
    return groups


def aborted(targets: Sequence[Any], ended: Ended, opts: argparse.Namespace) -> None:
    """If the program was aborted (SIGABRT) and the targets have many devices, print the likely reason: XLA
    has too few threads for the collectives of as many CPU devices. Print nothing with ``--quiet``."""
    if ended.signal == signal.SIGABRT and targets and targets[0].devices > THREADS and not opts.quiet:
        print_message(
            "the program was aborted, probably by XLA: it does so when collectives of"
            f" {targets[0].devices:,} CPU devices wait for one of its {THREADS} threads",
            f"programs lowered before that are still compiled for the target; {_DRY}",
        )


def installed(platform: str, name: str) -> None:
    """Check that the compiler for ``platform`` (``tpu`` or ``cuda``) is installed. ``name`` is the name of
    the target, for the error message.

    Raises:
      UsageError: the compiler is not installed; the hint is the command that installs it.
    """
    from jaxscope.targets import client

    lacking = client.missing(platform)
    if lacking is not None:
        raise UsageError(f"{name}: {lacking.what}", hint=lacking.command, slug="no-compiler")


def as_options(targets: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the targets (accelerators to compile for) as dicts of JSON values, for the options of the
    recording."""
    import msgspec

    return [msgspec.to_builtins(t) for t in targets]


def force(env: dict[str, str], targets: Sequence[Any]) -> int | None:
    """Set variables in the environment ``env`` so that JAX uses the CPU and simulates as many CPU devices as
    each of ``targets`` has devices. Return this number; None if ``env`` already sets a number of CPU devices,
    which stays. A platform that ``env`` selects also stays."""
    from jaxscope.launch import forced_devices

    return forced_devices.set_cpu_devices(env, targets[0].devices)


def begin(record: RunDir, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes] | None:
    """Start the worker process, which compiles the programs that the program of the run ``record`` queues for
    its targets (other accelerators). Return the process; None, after printing a message, if it cannot start.
    ``env`` is the environment of the worker (default: of this process)."""
    from jaxscope.log.jobs import Queue
    from jaxscope.targets import worker

    Queue(record).beat()  # other processes now see that a compiler is starting
    try:
        return worker.start(record, env)
    except OSError as e:
        print_message(
            f"cannot start the compiler's process, so nothing is compiled for the target: {e.strerror or e}"
        )
        return None


class _Restarts:
    """Counts how often in a row the worker (the process that compiles) ended without having compiled
    anything."""

    def __init__(self) -> None:
        self._without_progress = 0
        self._left_before: int | None = None

    def allowed(self, code: int, left: int) -> bool:
        """Print that the worker ended with the exit code ``code`` (negative: by a signal) before it compiled
        the last ``left`` programs. Return whether it may be started again."""
        self._without_progress = self._without_progress + 1 if left == self._left_before else 1
        self._left_before = left
        allowed = self._without_progress <= RESTARTS
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        what = "started again" if allowed else f"{left} not compiled"
        print_message(f"the process that compiles for the target ended ({how}): {what}")
        return allowed


class _Progress:
    """Prints how many programs of ``queue`` are left to compile."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._printed: tuple[int, tuple[int, ...]] | None = None

    def print(self, left: int) -> None:
        """Print that ``left`` programs are left to compile, and what the compiler waits for, unless nothing
        has changed since the last call."""
        from jaxscope.present.targets import waiting

        behind = self._queue.behind()
        if (left, behind) != self._printed:
            why = f": {waiting(behind)}" if behind else ""
            print_message(f"{left} left to compile for the target{why}")
            self._printed = left, behind


def end(
    record: RunDir,
    worker: subprocess.Popen[bytes],
    *,
    wait: bool,
    quiet: bool,
    env: Mapping[str, str] | None = None,
) -> bool:
    """Close the queue of programs to compile, because the program has ended, so that ``worker`` ends when the
    queue is empty. Return whether the user pressed Ctrl-C meanwhile.

    After Ctrl-C the worker continues in the background. A worker that ended too early is started again, but
    at most RESTARTS times in a row if no further program was compiled.

    Args:
      record: the run directory, which has the queue.
      wait: whether to wait until all programs are compiled.
      quiet: whether not to print how many programs are left.
      env: the environment for a new worker; None: the environment of this process.
    """
    from jaxscope.log.jobs import Queue

    queue = Queue(record)
    queue.close()
    restarts, progress = _Restarts(), _Progress(queue)
    started: subprocess.Popen[bytes] | None = worker
    interrupted = False
    try:
        while started is not None:
            left = len(queue.waiting())
            code = started.poll()
            if code is not None and not left:
                return False
            if code is not None:
                if not restarts.allowed(code, left):
                    return False
                started = begin(record, env)
            elif not wait:
                break
            elif left and not quiet:
                progress.print(left)
            if wait:
                time.sleep(PROGRESS_S)
    except KeyboardInterrupt:
        interrupted = True
    if started is not None:
        started.returncode = 0  # the worker outlives this process; without this, subprocess warns
    return interrupted
