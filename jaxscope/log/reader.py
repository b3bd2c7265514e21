"""Read events from a run directory: decode, merge by time, follow the logs while they are written.

Tolerates an incomplete last line (kill -9), damaged lines, events of a newer version, and processes that
appear later.
"""

from __future__ import annotations

import heapq
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from jaxscope.log import counts, files
from jaxscope.log.store import LAST, LAST_BYTES, RunDir
from jaxscope.schema.events import MAIN, AnyEvent, RunStarted, Unknown


class _Kind(msgspec.Struct):
    """The fields that are kept of an event of an unknown kind."""

    kind: str


class _Timed(_Kind):
    t_ns: int = 0
    pid: int = 0


Decoder = msgspec.json.Decoder[Any]  # of a union with the kinds of AnyEvent
_decoder: Decoder = msgspec.json.Decoder(AnyEvent)
_timed_decoder, _kind_decoder = msgspec.json.Decoder(_Timed), msgspec.json.Decoder(_Kind)
# A run of 21 digits: no number that we write is as long, but a name may have one.
_AS_ZEROS, _LONG = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 21
MOST = 10**21
MAX_KIND = 200  # characters
MAX_KEPT_BYTES = 1 << 16  # of an event of an unknown kind; of a longer one only kind, time and pid are kept
CHUNK = 1 << 20  # bytes read at a time, of all logs together
LEAST = 1 << 16  # of one of many
# A log that exceeds these limits is damaged or hostile. The longest line that capture writes, the key of a
# call with 100,000 arguments, has about 10 MB and 1 million values.
MAX_LINE_BYTES = 32 << 20
MAX_VALUES = 2_000_000  # of one line
MAX_LOG_BYTES = (1 << 30) + (64 << 20)  # the writer ends at 1 GiB
MAX_GROWTH = 640 << 20  # bytes of memory that the events of one reading may take


def decode(line: bytes, decoder: Decoder | None = None) -> AnyEvent | Unknown | None:
    """Decode one line of a log; None for a damaged one.

    Args:
      decoder: a decoder of some fields of the events; None: all fields are decoded.
    """
    try:
        event: AnyEvent = (decoder or _decoder).decode(line)
        if _LONG in line.translate(_AS_ZEROS) and not _sound(msgspec.to_builtins(_decoder.decode(line))):
            return None
        return event
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    if len(line) <= MAX_KEPT_BYTES:
        try:
            raw = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        if isinstance(raw, dict) and isinstance(raw.get("kind"), str):
            return Unknown(kind=raw["kind"], raw=raw)
        return None
    for known in (_timed_decoder, _kind_decoder):
        try:
            found = known.decode(line)  # other fields are skipped, whatever their size
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
        raw = {"t_ns": found.t_ns, "pid": found.pid} if isinstance(found, _Timed) else {}
        return Unknown(kind=found.kind[:MAX_KIND], raw=raw)
    return None


def _decoded(text: bytes, decoder: Decoder | None) -> list[AnyEvent | Unknown] | None:
    """Decode lines of a log at once; None: a line is empty, very long or no event, so that each is decoded
    alone.
    """
    number = text.count(b"\n") + 1
    # Within an event no brace stands before a line's end and another after it: none goes on from line to
    # line.
    apart = text.count(b"}\n{") == number - 1
    if not apart or len(text) > MAX_VALUES or _LONG in text.translate(_AS_ZEROS):
        return None
    try:
        events: list[AnyEvent | Unknown] = (decoder or _decoder).decode_lines(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return events if len(events) == number else None  # more: two on a line


def main_log(run: RunDir) -> Path | None:
    """Return the log of the process that the user started; None if there is none yet."""
    for path in run.logs():
        try:
            with files.open_regular(path, within=run.path) as f:
                first = decode(f.readline(MAX_LINE_BYTES))
        except OSError:
            continue
        if isinstance(first, RunStarted) and first.how in MAIN:
            return path
    return None


class _File:
    """Reads the complete new lines of one log, repeatedly. A line that is too long counts as damaged."""

    def __init__(
        self,
        path: Path,
        within: Path,
        room: Callable[[], bool] = lambda: True,
        decoder: Decoder | None = None,
    ) -> None:
        self.path = path
        self._decoder = decoder
        self.offset = 0
        self.damaged = 0
        self.room = room  # returns whether there is memory for more
        self._within = within
        self._torn = -1  # size of the file when it had no further complete line
        self._skipping = False  # ``offset`` is inside a line that is too long
        self._full = False  # a limit is reached: nothing more is read
        self.last = False  # the event that its recording stopped has been read

    def read(self, progress: Callable[[int], None] | None = None) -> list[AnyEvent | Unknown]:
        """Return the new events."""
        return [event for piece in self.pieces(progress) for event in piece]

    def pieces(
        self, progress: Callable[[int], None] | None = None, size: int = CHUNK
    ) -> Iterator[list[AnyEvent | Unknown]]:
        """Yield the new events, those of about ``size`` bytes at a time; the file is closed in between."""
        before = self.offset
        while (text := self._lines(size)) is not None:
            events = _decoded(text, self._decoder)
            if events is None:
                events = []
                for line in text.split(b"\n"):
                    self._take(line, events)
            self.offset += len(text) + 1
            if progress is not None:
                progress(self.offset - before)
            yield events
            before = self.offset
        if (last := self._stopped()) is not None:
            yield [last]

    def _stopped(self) -> AnyEvent | Unknown | None:
        """Return the event that the recording stopped, if the log itself had no room for it; None if already
        read."""
        if self.last:
            return None
        try:
            data = files.read(self.path.with_suffix(LAST), LAST_BYTES, within=self._within)
        except OSError:
            return None
        event = decode(data.rstrip(b"\0"), self._decoder)
        self.last = event is not None
        return event

    def _lines(self, size: int) -> bytes | None:
        """Return complete lines from ``offset``, without the end of the last one; None: there is none.

        Those that are too long are skipped.
        """
        try:
            with files.open_regular(self.path, within=self._within) as f:
                end = os.fstat(f.fileno()).st_size
                if self._full or end <= self.offset or end == self._torn:
                    return None
                f.seek(self.offset)
                begun: list[bytes] = []  # of a line that goes on
                held = 0
                while chunk := f.read(size):
                    if self.offset > MAX_LOG_BYTES or not self.room():
                        self._full = True
                        self.damaged += 1
                        return None
                    if (last := chunk.rfind(b"\n")) >= 0:
                        text = b"".join([*begun, chunk[:last]])
                        if not self._skipping:
                            return text
                        self._skipping = False
                        skipped, more, text = text.partition(b"\n")
                        self.offset += len(skipped) + 1
                        if more:
                            return text
                        f.seek(self.offset)
                        begun, held = [], 0
                        continue
                    begun.append(chunk)
                    held += len(chunk)
                    if self._skipping or held > MAX_LINE_BYTES:
                        self.damaged += not self._skipping
                        self._skipping = True
                        self.offset += held
                        begun, held = [], 0
                self._torn = end
        except OSError:
            pass
        return None

    def _take(self, line: bytes, events: list[AnyEvent | Unknown]) -> None:
        if not line.strip():
            return
        sound = len(line) <= MAX_LINE_BYTES and _values(line) <= MAX_VALUES
        event = decode(line, self._decoder) if sound else None
        if event is not None:
            events.append(event)
        else:
            self.damaged += 1


def _sound(value: object) -> bool:
    """Return whether all integers in plain data are below MOST: 10^400 is no size, time or count."""
    if isinstance(value, int):
        return abs(value) < MOST
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return all(map(_sound, inside))


def _values(line: bytes) -> int:
    """Estimate the number of values in a line of JSON; 0 for a short line, which cannot have many."""
    return sum(map(line.count, (b",", b"[", b"{"))) if len(line) > CHUNK else 0


def _room() -> Callable[[], bool]:
    """Return a function that tests whether this process has grown by less than MAX_GROWTH since."""
    unit = 1 if sys.platform == "darwin" else 1024

    def used() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    before = used()
    return lambda: used() - before < MAX_GROWTH


class Reader:
    """Follows a run's logs.

    ``entries`` returns the events since the last call as (log, event). Events of different processes are in
    order of time; events of one process are in the order in which they were written. ``log`` is the name of
    the file, because two processes may have had the same process id. ``damaged`` counts lines that are not
    events.

    Args:
      decoder: a decoder of a union with the same kinds of events as AnyEvent but only some of their fields.
    """

    def __init__(self, run: RunDir, decoder: Decoder | None = None) -> None:
        self.run = run
        self._decoder = decoder
        self._files: dict[Path, _File] = {}

    @property
    def damaged(self) -> int:
        return sum(f.damaged for f in self._files.values())

    def poll(self) -> list[AnyEvent | Unknown]:
        """Return ``entries`` without the logs' names."""
        return [event for _, event in self.entries()]

    def entries(
        self, progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[str, AnyEvent | Unknown]]:
        """Return the new events with their logs; calls ``progress(done, total)`` with the bytes read so
        far."""
        counted = self._begin(progress)
        batches = [(path.stem, f.read(counted)) for path, f in self._files.items()]
        batches = [b for b in batches if b[1]]
        if len(batches) == 1:
            log, events = batches[0]
            return [(log, event) for event in events]
        # Clocks of one process may step back; its own order is kept by a running maximum.
        keyed: list[tuple[int, int, int, str, AnyEvent | Unknown]] = []
        for source, (log, batch) in enumerate(batches):
            latest = 0
            for n, event in enumerate(batch):
                latest = max(latest, event.t_ns)
                keyed.append((latest, source, n, log, event))
        keyed.sort(key=lambda k: k[:3])
        return [k[3:] for k in keyed]

    def stream(
        self, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[tuple[str, AnyEvent | Unknown]]:
        """Yield ``entries`` one by one, without all of them in memory."""
        counted = self._begin(progress)
        size = max(CHUNK // max(1, len(self._files)), LEAST)
        if len(self._files) == 1:
            for path, f in self._files.items():
                log = path.stem
                for piece in f.pieces(counted, size):
                    for event in piece:
                        yield log, event
            return

        def keyed(
            source: int, path: Path, f: _File
        ) -> Iterator[tuple[int, int, int, str, AnyEvent | Unknown]]:
            latest, log = 0, path.stem
            for n, event in enumerate(event for piece in f.pieces(counted, size) for event in piece):
                latest = max(latest, event.t_ns)
                yield latest, source, n, log, event

        logs = [keyed(source, path, f) for source, (path, f) in enumerate(self._files.items())]
        for *_, log, event in heapq.merge(*logs, key=lambda k: k[:3]):
            yield log, event

    def pieces(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield the new events of one log after the other, those of about CHUNK bytes at a time."""
        self._begin(None)
        for path, f in self._files.items():
            for piece in f.pieces():
                yield path.stem, piece

    def _begin(self, progress: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
        """Look for new logs. Return a function that counts bytes read and calls ``progress``."""
        for path in self.run.logs():
            self._files.setdefault(path, _File(path, self.run.path, decoder=self._decoder))
        room = _room()
        for f in self._files.values():
            f.room = room
        if progress is None:
            return None
        total, done = self._unread(), 0

        def counted(count: int) -> None:
            nonlocal done
            done += count
            progress(done, max(done, total))

        return counted

    def counts(self) -> dict[str, memoryview]:
        """Return the current counts beside each log."""
        return {path.stem: found for path in self._files if len(found := counts.read(path))}

    def _unread(self) -> int:
        total = 0
        for path, f in self._files.items():
            try:
                total += max(0, files.status(path, within=self.run.path).st_size - f.offset)
            except OSError:
                continue
        return total


def read(run: RunDir) -> Iterator[AnyEvent | Unknown]:
    """Yield all events recorded so far."""
    yield from Reader(run).poll()
