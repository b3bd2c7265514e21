"""Copy the program's stderr unchanged to the stderr of ``jaxscope run``, and to the file ``output.log``.

XLA's C++ code prints warnings to stderr while it compiles; ``xla_warnings.Listener`` finds them in the copy.
A separate process makes the copy, so that children of the program can still write after the program and
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
    """The process that copies the program's stderr, as seen from the process that starts the program.

    Args:
      pid: id of the copying process.
      write_end: file descriptor that becomes the program's stderr.
      log: path of ``output.log``, the file to which stderr is copied.
    """

    def __init__(self, pid: int, write_end: int, log: str) -> None:
        self.pid = pid
        self.write_end = write_end
        self._log = log

    @classmethod
    def start(cls, run: RunDir, env: Mapping[str, str]) -> Tee | None:
        """Start the process that copies the program's stderr to a file in the run directory ``run``. ``env``
        is the program's environment. Return None if stderr is closed or cannot be copied; then the program
        writes to stderr directly."""
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
        """Close ``write_end`` in this process. Call this method once the program has inherited ``write_end``:
        otherwise the copying process would never see the end of file."""
        os.close(self.write_end)

    def finish(self) -> None:
        """Wait until stderr is copied to its end, or until ``output.log`` has not grown for QUIET_S seconds.
        The second case occurs if a child of the program still has stderr open."""
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
    """Open a pseudo-terminal that passes bytes unchanged (it adds no carriage returns). Return (file
    descriptor to read from, file descriptor for the program to write to). ``like`` is the file descriptor of
    a terminal with the wanted size and settings; None: default settings."""
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
    """Run as the copying process: copy the program's stderr to ``log`` and to the stderr of this process,
    until the end of file.

    Args:
      source: file descriptor to read from.
      log: file descriptor of the file ``output.log``.
      run: the run directory, into which an event for each of XLA's warnings is written.
      env: the program's environment.
      terminal: whether ``source`` is a pseudo-terminal, whose size then follows that of the user's terminal.
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
        listener.search(data)


def read_some(fd: int) -> bytes:
    """Return the next bytes from ``fd``; wait for them, unless ``fd`` is non-blocking. Empty at the end of
    the data or after an error, because Linux reports the end of a pseudo-terminal as the error EIO."""
    try:
        return os.read(fd, CHUNK)
    except OSError:
        return b""


def _write_all(fd: int, data: bytes) -> None:
    """Write all of ``data`` to ``fd``. Wait if ``fd`` is non-blocking and cannot take more at present."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # the descriptor is shared with a process that made it non-blocking
            select.select([], [fd], [])
