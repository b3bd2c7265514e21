"""Write the append-only event log of one process: each event with one ``write``, completely or not at all.

There is no buffer and no thread. When ``emit`` returns, the kernel has the event. So ``kill -9`` loses no
event, and the beginning of a phase (trace, lowering, compilation) is written before the phase runs. Events
are rare (a few for each cache miss, none for a call from the cache) and take about 20 us each.

If the disk is full, the directory was removed, or a limit of size is exceeded, the recording ends with a line
on stderr and the event RecordingStopped. If the log has no room for that event, it is written to a file that
was created for it at the beginning.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from jaxscope.log import files, liveness
from jaxscope.log.counts import SUFFIX, Cells
from jaxscope.log.store import LAST, LAST_BYTES, RunDir
from jaxscope.schema.events import Event, RecordingStopped, RunStarted

E = TypeVar("E", bound=Event)


class Filter(Protocol):
    """Changes events and program texts before they are written, for example to remove confidential parts."""

    def event(self, event: Any) -> Any:
        """Return ``event`` with changes, as plain data (dicts, lists, strings). ``event`` is an Event, or the
        result of the filter before this one."""

    def text(self, text: str) -> str: ...


MAX_LOG_BYTES = 1 << 30
MAX_BLOB_BYTES = 8 << 30


class Writer:
    """Writes the events of this process to a log file. A forked child of this process writes to another file.

    Args:
      first: returns the first event of a log. It is called with True in a forked child, which has a log of
        its own.
      of_program: whether this is a process of the recorded program. Its log is then locked until ``close`` or
        the end of the process, if the file system has locks. A second file is created, in which the last
        event (RecordingStopped) has room even if the disk is full.

    Attributes:
      process_index: ``jax.process_index()``, which is stored in each event; None: unknown.
      filters: objects that change events and texts before they are written, applied one after the other.
      before: called by each ``emit``, before the event is written; None: nothing is called.
      stopped: why nothing is written any more; None: events are written.
    """

    def __init__(self, run: RunDir, first: Callable[[bool], Event], *, of_program: bool = False) -> None:
        self.run = run
        self._of_program = of_program
        self.process_index: int | None = None
        self.filters: list[Filter] = []
        self.before: Callable[[], None] | None = None
        self._first = first
        self._encoder = msgspec.json.Encoder()
        self._reset(forked=False)

    def forked(self) -> None:
        """Write to a new log from now on. A forked child calls this method, so that it does not write to its
        parent's log."""
        self._let_go()  # this copy of the descriptor would keep the parent's lock when the parent has ended
        self._reset(forked=True)

    def _reset(self, *, forked: bool) -> None:
        """Start a new log: the next ``emit`` creates it. In a forked child, ``stopped`` stays as it was in
        the parent."""
        # A thread of the parent may have held the lock at the fork: the child gets a new one.
        self._lock = threading.RLock()
        self._fd: int | None = None  # stays open when the recording stops: the lock is on it
        self._path: Path | None = None
        self._forked = forked
        self._seq = 0
        self._bytes = 0
        self._blob_bytes = 0
        self._pid = os.getpid()
        self._file: tuple[int, int] | None = None
        self._cells: Cells | None = None
        self._pointer: tuple[int, memoryview, int] | None = None  # the first cell (log.counts.step_now)
        if not forked:
            self.stopped: str | None = None

    @property
    def events(self) -> int:
        """Return the number of events written to the log of this process."""
        return self._seq

    def open(self) -> None:
        """Create the log file and write its first event, without waiting for the first ``emit``. So a
        recording in which nothing happens has a log, too. If the log cannot be written, the recording stops;
        no exception is raised. Do nothing if the log exists or the recording has stopped."""
        with self._lock:
            if self.stopped is None and self._fd is None:
                self._open()

    def emit(self, event: E) -> None:
        """Append ``event`` to the log, with its sequence number, time, process and thread, after the first
        event if the log is new. If the log cannot be written, the recording stops; no exception is raised. Do
        nothing if the recording has stopped."""
        if self.before is not None:
            self.before()
        with self._lock:
            if self.stopped is None:
                if self._fd is None:
                    self._open()
                self._append(event)

    def put_text(self, text: str) -> tuple[str, int] | None:
        """Store ``text``, a program text, in the run directory, after the ``filters`` have changed it. Return
        (sha256 of the stored text, its size in UTF-8 bytes). Return None if the recording has stopped, or
        stops because the text cannot be written."""
        if self.stopped is not None:
            return None
        try:
            for each in self.filters:
                text = each.text(text)
            blob, size = self.run.put_text(text)
        except OSError as e:
            self._stop(e)
            return None
        self._blob_bytes += size
        if self._blob_bytes > MAX_BLOB_BYTES:
            self._limit("texts", MAX_BLOB_BYTES)
        return blob, size

    def cell(self) -> tuple[int, memoryview, int] | None:
        """Reserve a cell, a place for one counter, in the file of counters (log.counts). Return (index of the
        cell in the file, mapped page that contains the cell, index of the cell in the page). Return None if
        the recording has stopped, or if the file has no room or cannot be mapped."""
        with self._lock:
            if self.stopped is None and self._fd is None:
                self._open()
            if self.stopped is not None or self._cells is None:
                return None
            try:
                if self._pointer is None:
                    self._pointer = self._cells.take()
                return self._cells.take()
            except (OSError, AttributeError):  # no room, no mmap: the counts are written to the log
                return None

    def steps_in(self, cell: int, *, marks: bool) -> None:
        """Record which cell (a place for one number) in the file of counters (log.counts) has the training
        steps of this process, so that other processes can read them. Do nothing if no cell was reserved.

        Args:
          cell: the index of the cell.
          marks: True if the cell counts calls of ``jaxscope.step()``, each of which ends a step; False if it
            counts calls of a function, each of which begins a step.
        """
        if self._pointer is not None:
            _, page, index = self._pointer
            page[index] = cell * 2 + marks

    def close(self) -> None:
        """Close the log file, which releases its lock. Nothing is written afterwards. Unless the recording
        has stopped, remove the file that has room for RecordingStopped."""
        with self._lock:
            if self.stopped is None:
                self.stopped = "closed"
                if self._path is not None and self._of_program:
                    with contextlib.suppress(OSError):
                        files.remove(self._path.with_suffix(LAST), within=self.run.path)
            self._let_go()

    def _let_go(self) -> None:
        """Close the log file, which releases its lock. Do nothing if the program has closed its descriptor
        already."""
        fd, self._fd = self._fd, None
        if fd is not None and _file(fd) == self._file:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _open(self) -> None:
        """Create and lock the log file, prepare the file of counters and that for RecordingStopped, and write
        the first event. If the log cannot be created, stop the recording."""
        path = self.run.events / f"{self._pid}-{os.urandom(4).hex()}.jsonl"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._fd = files.descriptor(path, flags, within=self.run.path)
        except OSError as e:
            self._stop(e)
            return
        self._path = path
        self._file = _file(self._fd)
        self._cells = Cells(path.with_suffix(SUFFIX))
        locked = self._of_program and liveness.lock(self._fd)
        if self._of_program:
            with contextlib.suppress(OSError):
                files.write(path.with_suffix(LAST), bytes(LAST_BYTES), within=self.run.path)
        first = self._first(self._forked)
        if isinstance(first, RunStarted) and self._of_program:
            first = msgspec.structs.replace(first, machine=liveness.machine(), locked=locked)
        self._append(first)

    def _append(self, event: Event) -> None:
        """Write ``event`` to the open log. Stop the recording if this fails or the log has become too
        large."""
        if self._fd is None:
            return
        try:
            self._put(self._line(event))
        except OSError as e:
            self._stop(e)
            return
        self._seq += 1
        if self._bytes > MAX_LOG_BYTES and self.stopped is None:
            self._limit("events", MAX_LOG_BYTES)

    def _line(self, event: Event) -> bytes:
        """Return ``event`` as a line of the log (JSON), after the fields of ``Event`` are set and the
        ``filters`` have changed it. A time that ``event`` already has is kept."""
        stamped = msgspec.structs.replace(
            event,
            seq=self._seq,
            t_ns=event.t_ns or time.time_ns(),
            pid=self._pid,
            thread=threading.get_ident(),
            process_index=self.process_index,
        )
        written: Any = stamped
        for each in self.filters:
            written = each.event(written)
        try:
            return self._encoder.encode(written) + b"\n"
        except UnicodeEncodeError:  # a file name or an argument that is not UTF-8 (os.fsdecode)
            return self._encoder.encode(_spelled_out(msgspec.to_builtins(written))) + b"\n"

    def _put(self, line: bytes) -> None:
        """Append ``line`` to the log, completely or not at all. Raises OSError if it cannot be appended; the
        log is then unchanged."""
        # A program may close all descriptors (os.closerange), and then open another file with the number of
        # this one.
        if self._fd is None or _file(self._fd) != self._file:
            self._fd = None
            raise OSError(errno.EBADF, "the program closed the log's descriptor")
        written = os.write(self._fd, line)
        try:
            while written < len(line):  # on a full disk, a part is written before the next write fails
                written += os.write(self._fd, line[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._bytes)
            raise
        self._bytes += len(line)

    def _limit(self, kind: str, limit: int) -> None:
        """Stop the recording, because the ``kind`` of data (events or texts) has more than ``limit``
        bytes."""
        self._ended_early(f"{kind} of this process exceeded {limit >> 20} MiB")

    def _stop(self, e: OSError) -> None:
        """Stop the recording, because the error ``e`` prevented writing."""
        self._ended_early(e.strerror or str(e), f"{self.run.path}: ")

    def _ended_early(self, reason: str, where: str = "") -> None:
        """Stop the recording because of ``reason``. Write the reason to stderr, after the text ``where``, and
        if possible to the log (``RecordingStopped``), or else to the file created for it."""
        self.stopped = where + reason
        try:
            line = self._line(RecordingStopped(reason=reason))
            try:
                self._put(line)
            except OSError:
                if self._path is not None and self._of_program:
                    fd = files.descriptor(self._path.with_suffix(LAST), os.O_WRONLY, within=self.run.path)
                    try:
                        os.pwrite(fd, line[:LAST_BYTES], 0)
                    finally:
                        os.close(fd)
        except Exception:  # nothing can be written, so that readers see a log without an end
            pass
        try:
            sys.stderr.write(f"jaxscope: recording stopped: {self.stopped}; the program continues\n")
        except Exception:  # stderr may be closed, which the program must not notice
            pass


def _spelled_out(value: Any) -> Any:
    """Return ``value``, plain data (dicts, lists, strings), with the lone surrogates in its strings escaped,
    because UTF-8 cannot encode them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled_out(k): _spelled_out(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled_out(v) for v in value]
    return value


def _file(fd: int) -> tuple[int, int] | None:
    """Return (device, inode) of the file that is open under the descriptor ``fd``; None if no file is. If
    this pair changes, the program has closed the descriptor and opened another file."""
    try:
        stat = os.fstat(fd)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
