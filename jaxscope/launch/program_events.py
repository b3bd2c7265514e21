"""Write the heartbeat and the end of the program into the run directory.

Owns how often the heartbeat comes, the ``ProgramExited`` event, and how we take our leave as the program took
its own. Must not know whether a runner or a keeper is watching.
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
    """How the program ended. Either ``exit_code`` or ``signal`` is None.

    Attributes:
      pid: the program's process id.
      seconds: seconds since its start, by the monotonic clock.
      interrupted: whether a signal (Ctrl-C, kill) requested to end the program, and everything that would
        run after it.
    """

    pid: int
    exit_code: int | None
    signal: int | None
    seconds: float
    interrupted: bool = False

    @classmethod
    def from_status(cls, pid: int, status: int, seconds: float) -> Ended:
        """Create it from the ``status`` of ``os.waitpid``."""
        code = os.waitstatus_to_exitcode(status)
        return cls(pid, code if code >= 0 else None, -code if code < 0 else None, seconds)

    @property
    def how(self) -> str:
        """Return ``exit code 3`` or ``SIGTERM``."""
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
        """Return the exit code; if a signal ended the program, end this process by the same signal."""
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
    """Write ``ProgramExited`` into a log of its own."""
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
    """Disable our core dump: the program's own is in the same place."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # 1, not 0: where core_pattern is a pipe (systemd-coredump, apport), Linux ignores 0 and takes 1 for
    # "none" (do_coredump in fs/coredump.c); a file of one byte is below the smallest core and not written.
    soft = 1 if hard == resource.RLIM_INFINITY or hard >= 1 else 0
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
