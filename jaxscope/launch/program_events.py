"""Record how the user's program ended (the event ``ProgramExited``), and end this process in the same way.

``jaxscope run``, or with ``--detach`` the keeper, uses this module when the program has ended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
from typing import NamedTuple

from jaxscope.log.store import RunDir

HEARTBEAT_S = 1.0


class Ended(NamedTuple):
    """How the user's program ended. Exactly one of ``exit_code`` and ``signal`` is None.

    Attributes:
      pid: the program's process id.
      exit_code: the exit code; None: a signal ended the program.
      signal: the number of the signal that ended the program; None: no signal did.
      seconds: seconds from the start of the program to its end; 0.0: unknown.
      interrupted: whether Ctrl-C, or a signal such as SIGTERM or SIGHUP, requested the end; False for a
        program to which jaxscope was attached. If true, ``jaxscope run --vary`` does not execute the program
        with further settings.
    """

    pid: int
    exit_code: int | None
    signal: int | None
    seconds: float
    interrupted: bool = False

    @classmethod
    def from_status(cls, pid: int, status: int, seconds: float) -> Ended:
        """Return how the program with the process id ``pid`` ended. ``status`` is its wait status from
        ``os.waitpid``; ``seconds`` is the time from its start to its end."""
        code = os.waitstatus_to_exitcode(status)
        return cls(pid, code if code >= 0 else None, -code if code < 0 else None, seconds)

    @property
    def how(self) -> str:
        """Return how the program ended, for messages: ``exit code 3`` or ``SIGTERM``."""
        if self.signal is None:
            return f"exit code {self.exit_code}"
        try:
            return signal.Signals(self.signal).name
        except ValueError:  # real-time signals have numbers only
            return f"signal {self.signal}"

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0

    def leave(self) -> int:
        """Return the exit code of the user's program. If a signal ended the program, end this process by the
        same signal; if this fails, return 128 + the number of the signal."""
        if self.signal is None:
            return self.exit_code or 0
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        _no_core_dump()
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no disposition to set
            signal.signal(self.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [self.signal])
        os.kill(os.getpid(), self.signal)
        time.sleep(0.1)
        return 128 + self.signal  # process 1 of a container cannot be ended by its own signal


def write_end(run: RunDir, ended: Ended) -> None:
    """Write an event ``ProgramExited``, about how the user's program ended, into a new log file of the
    recording ``run``. Write nothing if the recording was removed."""
    from jaxscope.log.writer import Writer
    from jaxscope.schema.events import ProgramExited

    if not run.events.is_dir():
        return  # the program removed its own run directory: the event is not needed
    event = ProgramExited(
        program_pid=ended.pid, exit_code=ended.exit_code, signal=ended.signal, seconds=ended.seconds
    )
    writer = Writer(run, first=lambda forked: event)
    writer.open()  # opening a log writes its first event: the only one this log has
    writer.close()


def _no_core_dump() -> None:
    """Disable the core dump of this process, which would overwrite the core dump of the user's program."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # The limit is 1 byte, not 0: if core_pattern is a pipe (systemd-coredump, apport), Linux ignores 0, and 1
    # means "none" (do_coredump in fs/coredump.c). If it is a file, a core is larger than 1 byte and is not
    # written.
    soft = 1 if hard == resource.RLIM_INFINITY or hard >= 1 else 0
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
