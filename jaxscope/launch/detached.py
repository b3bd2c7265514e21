"""Fork a helper process that is isolated from the open files, the terminal and the signals of its parent."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable


def fork_apart(body: Callable[[], None], *, keep: Iterable[int] = ()) -> int:
    """Run ``body`` in a forked process, which ends when ``body`` returns. Return the id of the forked process
    at once.

    The forked process blocks all signals that can be blocked. It closes all file descriptors except ``keep``,
    and connects closed standard streams to /dev/null. If ``body`` raises an exception, the process ends
    without a message. Call this function only while the calling process has a single thread.

    Raises:
      OSError: the process could not be created.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # buffered output would be written twice
            stream.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _close_all_but(set(keep))
        body()
    finally:
        os._exit(0)


def _close_all_but(keep: set[int]) -> None:
    """Close all file descriptors except ``keep``, and connect closed standard streams to /dev/null. An open
    writing end of a pipe would keep its reader from seeing the end of file."""
    try:
        # /dev/fd is there on Linux and macOS; a closerange up to RLIMIT_NOFILE may be a million calls.
        found = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208
    except OSError:
        found = list(range(1024))
    for fd in found:
        if fd not in keep:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is closed already
                os.close(fd)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if fd not in keep and fd != null:
            os.dup2(null, fd)
    if null > 2:
        os.close(null)
    else:
        os.set_inheritable(null, True)
