"""Copy the program's stderr unchanged to the stderr of ``jaxscope run``, and to the file ``output.log``.

XLA's C++ code prints warnings to stderr while it compiles; ``xla_warnings.Listener`` finds them in the copy.
A separate process copies, so that children of the program can continue to write after the program and
``jaxscope run`` have ended.
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
    """A separate process that copies the program's stderr. The object is in the process that starts the
    program.

    Args:
      pid: id of the copying process.
      write_end: file descriptor that becomes the program's stderr.
      log: path of the file to which the output is copied.
    """

    def __init__(self, pid: int, write_end: int, log: str) -> None:
        self.pid = pid
        self.write_end = write_end
        self._log = log

    @classmethod
    def start(cls, run: RunDir, env: Mapping[str, str]) -> Tee | None:
        """Start the process that copies the program's stderr into the run directory ``run``. ``env`` is the
        program's environment. Return None if stderr is closed or cannot be copied; the program then writes to
        stderr directly."""
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
        """Close ``write_end`` in this process, after the program has inherited it. Otherwise the copying
        process would never see the end of file."""
        os.close(self.write_end)

    def finish(self) -> None:
        """Wait until the output of the program is copied, or until the file ``output.log`` has not grown for
        QUIET_S seconds (0.3 s): children of the program that have stderr open may write later."""
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
    """Open a pseudo-terminal that does not change the bytes (it adds no carriage returns). Return two file
    descriptors: the end to read from, and the end for the program to write to. ``like`` is the descriptor of
    a terminal, whose size and settings are used; None: default settings."""
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(like if like is not None else theirs)
    mode[tty.OFLAG] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    if like is not None:
        copy_size(like, theirs)
    return ours, theirs


def copy_size(source: int, target: int) -> None:
    """Give the terminal ``target`` the rows and columns of ``source`` (file descriptors)."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _copy(source: int, log: int, run: RunDir, env: Mapping[str, str], *, terminal: bool) -> None:
    """Run as the copying process: copy the program's stderr to a file and to the stderr of this process,
    until the end of file.

    Args:
      source: file descriptor to read from.
      log: file descriptor of the file.
      run: the run directory; an event for each of XLA's warnings in the output is written into it.
      env: the program's environment.
      terminal: whether ``source`` is a pseudo-terminal. It then follows the size of the user's terminal.
    """
    if terminal:
        signal.signal(signal.SIGWINCH, lambda *_: copy_size(STDERR, source))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGWINCH])
    sys.stderr = None  # only the program writes there
    listener = Listener(run, env)
    while data := read_some(source):
        with contextlib.suppress(OSError):  # if the disk is full, stderr is still copied
            os.write(log, data)
        # If stderr of this process is closed, this raises and the process ends, so that the program's next
        # write fails as it would without jaxscope.
        _write_all(STDERR, data)
        listener.hear(data)


def read_some(fd: int) -> bytes:
    """Read the available bytes from ``fd``. The result is empty at the end of the data. Linux reports the end
    of a pseudo-terminal as the error EIO; the result is then empty, too."""
    try:
        return os.read(fd, CHUNK)
    except OSError:
        return b""


def _write_all(fd: int, data: bytes) -> None:
    """Write all of ``data`` to ``fd``, and wait if the descriptor is non-blocking and cannot take more at
    present."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # the descriptor is shared with a process that made it non-blocking
            select.select([], [fd], [])
