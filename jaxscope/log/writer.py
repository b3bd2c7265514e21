"""The append-only event log of one process: one ``write`` an event, whole or not at all.

There is no buffer and no thread: an event is in the kernel's hands when ``emit`` returns, so that
``kill -9`` loses nothing that was said, and every phase edge is on disk before the phase begins.
Events are rare (some per cache miss, never one per warm call): measured about 20 us each.

A disk that is full, or a directory that vanished, ends the recording with one line on stderr.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from jaxscope.log.counts import SUFFIX, Cells
from jaxscope.log.store import RunDir
from jaxscope.schema.events import AnyEvent, Degraded, Event

E = TypeVar("E", bound=Event)

MAX_LOG_BYTES = 1 << 30
MAX_BLOB_BYTES = 8 << 30


class Writer:
    """Writes the events of this process, and of each process forked from it, to files of their own.

    Args:
      run: where.
      first: makes the event that opens a process's log; called again in a forked child, which
        gets a log of its own as soon as it has something to say.
    """

    def __init__(self, run: RunDir, first: Callable[[bool], Event]) -> None:
        self.run = run
        self.process_index: int | None = None
        self._first = first
        self._encoder = msgspec.json.Encoder()
        self._reset(forked=False)

    def forked(self) -> None:
        """To be called in a forked child: from now on it writes to a log of its own."""
        self._reset(forked=True)

    def _reset(self, *, forked: bool) -> None:
        # A thread of the parent may have held the lock at the fork: the child gets a new one.
        self._lock = threading.RLock()
        self._fd: int | None = None
        self._forked = forked
        self._seq = 0
        self._bytes = 0
        self._blob_bytes = 0
        self._pid = os.getpid()
        self._file: tuple[int, int] | None = None
        self._cells: Cells | None = None
        if not forked:
            self.stopped: str | None = None

    def open(self) -> None:
        """Make the log now rather than at the first event: a recording without any is seen too."""
        with self._lock:
            if self.stopped is None and self._fd is None:
                self._open()

    def emit(self, event: E) -> None:
        """Append ``event`` with its sequence number, time and origin. Never raises."""
        with self._lock:
            if self.stopped is None:
                if self._fd is None:
                    self._open()
                self._append(event)

    def put_text(self, text: str) -> tuple[str, int] | None:
        """Store a text beside the log; None when the recording has stopped."""
        if self.stopped is not None:
            return None
        try:
            blob, size = self.run.put_text(text)
        except OSError as e:
            self._stop(e)
            return None
        self._blob_bytes += size
        if self._blob_bytes > MAX_BLOB_BYTES:
            self._limit("texts", MAX_BLOB_BYTES)
        return blob, size

    def cell(self) -> tuple[int, memoryview, int] | None:
        """A place for a number that grows (log.counts.Cells.take); None where none can be had."""
        with self._lock:
            if self.stopped is None and self._fd is None:
                self._open()
            if self.stopped is not None or self._cells is None:
                return None
            try:
                return self._cells.take()
            except (OSError, AttributeError):  # no room, no mmap: the counts are written to the log
                return None

    def close(self) -> None:
        with self._lock:
            fd, self._fd = self._fd, None
            self.stopped = self.stopped or "closed"
            if fd is not None and _file(fd) == self._file:
                os.close(fd)

    def _open(self) -> None:
        path = self.run.events / f"{self._pid}-{secrets.token_hex(4)}.jsonl"
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as e:
            self._stop(e)
            return
        self._file = _file(self._fd)
        self._cells = Cells(path.with_suffix(SUFFIX))
        self._append(self._first(self._forked))

    def _append(self, event: Event) -> None:
        if self._fd is None:
            return
        stamped = msgspec.structs.replace(
            event,
            seq=self._seq,
            t_ns=event.t_ns or time.time_ns(),
            pid=self._pid,
            thread=threading.get_ident(),
            process_index=self.process_index,
        )
        try:
            line = self._encoder.encode(stamped) + b"\n"
        except UnicodeEncodeError:  # a file name or an argument that is not UTF-8 (os.fsdecode)
            line = self._encoder.encode(_spelled_out(msgspec.to_builtins(stamped))) + b"\n"
        try:
            # A program may close descriptors it does not know (os.closerange) and get ours for a file of its own.
            if _file(self._fd) != self._file:
                self._fd = None
                raise OSError(9, "the program closed the log's descriptor")
            written = os.write(self._fd, line)
            if written != len(line):
                raise OSError(28, f"wrote {written} of {len(line)} bytes")
        except OSError as e:
            self._stop(e)
            return
        self._seq += 1
        self._bytes += len(line)
        if self._bytes > MAX_LOG_BYTES and self.stopped is None:
            self._limit("events", MAX_LOG_BYTES)

    def _limit(self, what: str, limit: int) -> None:
        reason = f"{what} of this process exceeded {limit >> 20} MiB"
        self._append_last(Degraded(seam="log", reason=reason))
        self._say(reason)

    def _append_last(self, event: AnyEvent) -> None:
        self.stopped = "limit"
        self._append(event)

    def _stop(self, e: OSError) -> None:
        self._say(f"{self.run.path}: {e.strerror or e}")

    def _say(self, reason: str) -> None:
        self.stopped = reason
        fd, self._fd = self._fd, None
        try:
            if fd is not None and _file(fd) == self._file:
                os.close(fd)
            sys.stderr.write(f"jaxscope: recording stopped: {reason}; the program goes on\n")
        except Exception:  # stderr may be closed: the program must not notice
            pass


def _spelled_out(value: Any) -> Any:
    """Plain data whose texts have their lone surrogates as escapes: UTF-8 has no place for them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled_out(k): _spelled_out(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled_out(v) for v in value]
    return value


def _file(fd: int) -> tuple[int, int] | None:
    """Which file a descriptor is open on."""
    try:
        stat = os.fstat(fd)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
