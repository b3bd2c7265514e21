"""Copy the program's stderr to ours unchanged, and to a file.

XLA's C++ code prints to descriptor 2 while it compiles. A separate process copies it, so that children of the
program can continue to write after the program and the runner have ended. ``xla_warnings.Listener`` finds
warnings in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Mapping

from jaxscope.launch.detached import fork_apart
from jaxscope.launch.xla_warnings import Listener
from jaxscope.log import files
from jaxscope.log.store import RunDir

CHUNK = 1 << 16
STDERR = 2
QUIET_S = 0.3


class Tee:
    """The runner's end of the copy: ``write_end`` becomes the program's stderr."""

    def __init__(self, pid: int, write_end: int, log: str) -> None:
        self.pid = pid
        self.write_end = write_end
        self._log = log

    @classmethod
    def start(cls, run: RunDir, env: Mapping[str, str]) -> Tee | None:
        """Start copying. Return None if stderr is closed or copying is not possible; the program then
        writes to stderr directly.

        ``env``: the program's environment.
        """
        fds: list[int] = []
        try:
            log = files.append(run.output, within=run.path)
            fds.append(log)
            if terminal := os.isatty(STDERR):
                read_end, write_end = open_terminal(like=STDERR)
            else:
                os.fstat(STDERR)
                read_end, write_end = os.pipe()
            fds += [read_end, write_end]
            pid = fork_apart(
                lambda: _copy(read_end, log, run, env, terminal=terminal), keep=[read_end, log, STDERR]
            )
        except OSError:
            for fd in fds:
                os.close(fd)
            return None
        os.close(read_end)
        os.close(log)
        return cls(pid, write_end, str(run.output))

    def handed_over(self) -> None:
        """Close our copy of the writing end after the program has its own: it would hide the end of file."""
        os.close(self.write_end)

    def finish(self) -> None:
        """Wait until all output is copied; not for children of the program that still hold stderr."""
        size, changed = -1, time.monotonic()
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            now = time.monotonic()
            with contextlib.suppress(OSError):
                if (grown := os.stat(self._log).st_size) != size:  # noqa: PTH116
                    size, changed = grown, now
            if now - changed > QUIET_S:
                return
            time.sleep(0.01)


def open_terminal(*, like: int | None) -> tuple[int, int]:
    """Open a pseudo-terminal with the size of the terminal ``like``. Return the descriptors of our end and
    of the program's end.

    It does not change the bytes: no carriage returns are added.
    """
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(like if like is not None else theirs)
    mode[tty.OFLAG] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    if like is not None:
        copy_size(like, theirs)
    return ours, theirs


def copy_size(source: int, target: int) -> None:
    """Give the terminal ``target`` the rows and columns of ``source``."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _copy(source: int, log: int, run: RunDir, env: Mapping[str, str], *, terminal: bool) -> None:
    if terminal:
        signal.signal(signal.SIGWINCH, lambda *_: copy_size(STDERR, source))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGWINCH])
    sys.stderr = None  # only the program writes there
    listener = Listener(run, env)
    while data := read_some(source):
        with contextlib.suppress(OSError):  # the disk is full: the program's stderr still goes through
            os.write(log, data)
        # If our stderr is closed, this raises and the process ends, so that the program's next write fails as
        # it would without jaxscope.
        _write_all(STDERR, data)
        listener.hear(data)


def read_some(fd: int) -> bytes:
    """Read the available bytes; empty at the end, which Linux reports on a pseudo-terminal as EIO."""
    try:
        return os.read(fd, CHUNK)
    except OSError:
        return b""


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # the descriptor is shared with a process that made it non-blocking
            select.select([], [fd], [])
