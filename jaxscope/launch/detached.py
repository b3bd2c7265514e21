"""A forked process of our own that shares nothing with its parent by accident.

Owns the fork: signals blocked, standard streams on /dev/null, every other descriptor closed but the
ones asked for, and never a return into the caller's code. Knows nothing of what the process does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable


def fork_apart(body: Callable[[], None], *, keep: Iterable[int] = ()) -> int:
    """Run ``body`` in a forked process, to be called while this process has one thread.

    Every signal that can be blocked is blocked in it. What ``body`` raises ends the process quietly.

    Args:
      keep: descriptors that stay open; a standard stream not among them is /dev/null.

    Returns:
      The new process's id.

    Raises:
      OSError: no process could be made.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # what is still buffered would be written twice
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
    # A copy of a pipe's end kept open here by accident would hide the end of file from its reader.
    try:
        # /dev/fd is there on Linux and macOS; a closerange up to RLIMIT_NOFILE may be a million calls.
        found = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208
    except OSError:
        found = list(range(1024))
    for fd in found:
        if fd not in keep:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is gone already
                os.close(fd)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if fd not in keep and fd != null:
            os.dup2(null, fd)
    if null > 2:
        os.close(null)
    else:
        os.set_inheritable(null, True)
