"""Find out whether the process that writes a file is alive, by a lock on the file or by a heartbeat.

A lock ends with its process. So a lock that is not free proves, on any machine, that its process is alive. A
free lock proves that the process is gone only on the machine on which the process ran: a shared file system
may keep the locks of each machine apart, or support no locks. On other machines, the heartbeat decides: a
line with the machine and the time, which the process writes every second.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from jaxscope.log import files

STALE_S = 10.0  # seconds: ten missed heartbeats, because a busy machine may miss some
BEAT_BYTES = 256  # always the same size, so that it can be written even if the disk is full
_TRIES = 5  # a reader that tests the lock holds it for some microseconds


@functools.cache
def machine() -> str:
    """Return a text that identifies this machine since its last boot. If the system has no such text, return
    the host name: ``host:node1``."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(Exception):
        if sys.platform == "darwin":
            import ctypes

            text, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
            libc = ctypes.CDLL(None)
            if libc.sysctlbyname(b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0) == 0:
                return text.value.decode()
    return f"host:{os.uname().nodename}"


def is_running(pid: int) -> bool:
    """Return whether the process ``pid`` of this machine is running. On Linux, a zombie does not count,
    because it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        pass  # no /proc on macOS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of another user
    return True


def lock(fd: int) -> bool:
    """Lock the open file with the descriptor ``fd``, and return True. Return False if another process has
    locked the file, or the file system has no locks. The lock lasts until all copies of ``fd`` are closed,
    also those in forked children."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.0005)
        except OSError:  # the file system has no locks
            break
    return False


def locked(path: Path) -> bool | None:
    """Return whether any process, also this one, has locked the file ``path`` now. Return None if this cannot
    be determined."""
    try:
        fd = files.descriptor(path, os.O_RDONLY, within=path.parent)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(fd)


def writer_alive(path: Path, where: str | None, took: bool) -> bool | None:
    """Return whether the process that writes the file ``path`` is alive, judged by its lock on the file: True
    if the file is locked, False if the process has ended, None if this cannot be determined on this machine.

    Args:
      where: the machine of the process, as ``machine`` returns it; None: unknown. Only on this machine does a
        free lock prove that the process has ended.
      took: whether the process did lock the file; False, for example, if its file system has no locks.
    """
    found = locked(path)
    if found is False and not (took and where == machine()):
        return None
    return found


def recent(seconds: float) -> bool:
    """Return whether the time ``seconds`` (since 1970) is less than STALE_S seconds ago. Return True also for
    a time less than STALE_S seconds in the future, because the clocks of two machines may differ."""
    return abs(time.time() - seconds) < STALE_S


class Heartbeat:
    """Writes the heartbeat file ``path``: one line with the present time, which shows that this process is
    alive. With ``hold``, the first call of ``beat`` also locks the file, until ``close`` is called or this
    process ends."""

    def __init__(self, path: Path, *, hold: bool = True) -> None:
        self._path = path
        self._hold = hold
        self._fd: int | None = None
        self._locked = False

    def beat(self) -> None:
        """Write the present time to the heartbeat file. Errors are ignored, because the process goes on
        without a heartbeat."""
        with contextlib.suppress(OSError):
            if self._fd is None:
                self._fd = files.descriptor(self._path, os.O_RDWR | os.O_CREAT, within=self._path.parent)
                self._locked = self._hold and lock(self._fd)
            owner = {"machine": machine(), "host": os.uname().nodename, "pid": os.getpid()}
            line = json.dumps({**owner, "locked": self._locked, "at": round(time.time(), 3)})
            os.pwrite(self._fd, line.encode()[: BEAT_BYTES - 1].ljust(BEAT_BYTES - 1) + b"\n", 0)

    def close(self) -> None:
        """Close the heartbeat file, which releases its lock."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with contextlib.suppress(OSError):
                os.close(fd)


class Beat(NamedTuple):
    """The contents of a heartbeat file, in which a process writes a line every second.

    Attributes:
      at: when the line was last written, in seconds since 1970.
      going: whether the process is alive; None: this cannot be determined on this machine. The caller then
        has to judge by ``at``.
    """

    at: float
    going: bool | None


def beat_of(path: Path) -> Beat | None:
    """Read the heartbeat file ``path``. Return None if it cannot be read. If the file has no valid line (an
    older jaxscope wrote an empty file), ``Beat.at`` is the time at which the file was last changed."""
    try:
        with files.open_regular(path, within=path.parent) as f:
            at = os.fstat(f.fileno()).st_mtime
            text = f.read(BEAT_BYTES)
    except OSError:
        return None
    try:
        fields = json.loads(text)
        where, took, wrote = fields["machine"], fields["locked"] is True, float(fields["at"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return Beat(at, None)
    return Beat(wrote, writer_alive(path, where, took))
