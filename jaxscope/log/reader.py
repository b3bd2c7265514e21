"""Read the events of a run: decode them, merge the logs of its processes by time, and follow growing logs.

Four things do not stop the reader: an incomplete last line (after ``kill -9``), damaged lines, events of a
newer version, and processes that start later.
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
    """The kind of an event. If a very long line of a log has an event of an unknown kind, only the kind is
    decoded, and if possible the fields of ``_Timed``."""

    kind: str


class _Timed(_Kind):
    """The kind, the time and the process id of an event."""

    t_ns: int = 0
    pid: int = 0


Decoder = msgspec.json.Decoder[Any]  # of a union of events with the same kinds as AnyEvent
_decoder: Decoder = msgspec.json.Decoder(AnyEvent)
_timed_decoder, _kind_decoder = msgspec.json.Decoder(_Timed), msgspec.json.Decoder(_Kind)
# A sequence of 21 digits. The writer writes no number of this length, but a name may contain one.
_AS_ZEROS, _LONG = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 21
MOST = 10**21
MAX_KIND = 200  # characters
MAX_KEPT_BYTES = 1 << 16  # of a longer event of an unknown kind, only kind, time and pid are kept
CHUNK = 1 << 20  # bytes read at a time, of all logs together
LEAST = 1 << 16  # bytes read at a time of one log at least, even if there are many logs
# A log that exceeds these limits is damaged or hostile. The longest line that capture writes, the key of a
# call with 100,000 arguments, has about 10 MB and 1 million values.
MAX_LINE_BYTES = 32 << 20
MAX_VALUES = 2_000_000  # of one line
MAX_LOG_BYTES = (1 << 30) + (64 << 20)  # the writer stops at 1 GiB
MAX_GROWTH = 640 << 20  # bytes of memory by which this process may grow while it reads new events


def decode(line: bytes, decoder: Decoder | None = None) -> AnyEvent | Unknown | None:
    """Decode one line of a log to an event. Return None if the line is damaged: it is no JSON object with a
    ``kind``, or has an integer of more than 21 digits. An event of an unknown kind, or with fields of other
    types, becomes ``Unknown``. ``decoder`` reads only some fields of the events; None: all fields are
    decoded."""
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
            found = known.decode(line)  # skips all other fields, whatever their size
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
        raw = {"t_ns": found.t_ns, "pid": found.pid} if isinstance(found, _Timed) else {}
        return Unknown(kind=found.kind[:MAX_KIND], raw=raw)
    return None


def _decoded(text: bytes, decoder: Decoder | None) -> list[AnyEvent | Unknown] | None:
    """Decode ``text``, several lines of a log, together. Return None if this fails, for example because a
    line is damaged or has an event of an unknown kind. The caller must then decode each line alone."""
    number = text.count(b"\n") + 1
    # If each line ends with a brace and the next begins with one, no event spans several lines.
    apart = text.count(b"}\n{") == number - 1
    if not apart or len(text) > MAX_VALUES or _LONG in text.translate(_AS_ZEROS):
        return None
    try:
        events: list[AnyEvent | Unknown] = (decoder or _decoder).decode_lines(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return events if len(events) == number else None  # more events than lines: a line has two


def main_log(run: RunDir) -> Path | None:
    """Return the path of the log in ``run`` of the process that the user started (not of one of its child
    processes); None if this log does not exist yet."""
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
    """Reads one log file while it grows: each call of ``pieces`` yields the events of the new complete lines.
    ``damaged`` counts the lines that are not events, or are too long."""

    def __init__(
        self,
        path: Path,
        within: Path,
        room: Callable[[], bool] = lambda: True,
        decoder: Decoder | None = None,
    ) -> None:
        self.path = path
        self._decoder = decoder
        self.offset = 0  # up to where the log was read, in bytes
        self.damaged = 0
        self.room = room  # returns whether there is memory for more
        self._within = within
        self._torn = -1  # size of the file when it had no further complete line
        self._skipping = False  # whether ``offset`` is inside a line that is too long
        self._full = False  # whether a limit is reached; then nothing more is read
        self.last = False  # whether the event RecordingStopped has been read from its own file

    def pieces(
        self, progress: Callable[[int], None] | None = None, size: int = CHUNK
    ) -> Iterator[list[AnyEvent | Unknown]]:
        """Yield the events that were added to the log since the last call, as lists, each read from about
        ``size`` bytes. ``progress``, if any, is called before each list with the number of bytes that were
        read for it."""
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
        """Return the event RecordingStopped from its own file, which the writer uses if the log has no room.
        Return None if this file has no event, or the event was returned before."""
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
        """Return the next complete lines of the log, without the last line break, but do not move ``offset``
        behind them. Return None if there is no further complete line, or a limit is reached. The log is read
        in parts of ``size`` bytes. Lines that are too long are skipped."""
        try:
            with files.open_regular(self.path, within=self._within) as f:
                end = os.fstat(f.fileno()).st_size
                if self._full or end <= self.offset or end == self._torn:
                    return None
                f.seek(self.offset)
                begun: list[bytes] = []  # the parts so far of a line whose end is not found yet
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
        """Decode ``line`` and append its event to ``events``. If ``line`` is damaged or too long, count it in
        ``damaged`` instead. An empty line is ignored."""
        if not line.strip():
            return
        sound = len(line) <= MAX_LINE_BYTES and _values(line) <= MAX_VALUES
        event = decode(line, self._decoder) if sound else None
        if event is not None:
            events.append(event)
        else:
            self.damaged += 1


def _sound(value: object) -> bool:
    """Return whether the absolute values of all integers in ``value``, a decoded line of JSON, are below
    MOST. A larger integer is no size, time or count: the line is damaged."""
    if isinstance(value, int):
        return abs(value) < MOST
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return all(map(_sound, inside))


def _values(line: bytes) -> int:
    """Return about how many values ``line``, a line of JSON, has; 0 if it has at most CHUNK bytes. A line
    with too many values is not decoded."""
    return sum(map(line.count, (b",", b"[", b"{"))) if len(line) > CHUNK else 0


def _room() -> Callable[[], bool]:
    """Return a function that returns whether the peak memory of this process has grown by less than
    MAX_GROWTH bytes since this call of ``_room``."""
    unit = 1 if sys.platform == "darwin" else 1024

    def used() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    before = used()
    return lambda: used() - before < MAX_GROWTH


class Reader:
    """Follows the logs of a run: ``poll``, ``entries``, ``stream`` and ``pieces`` return the events that were
    written since the last call of any of them.

    Events of different processes are merged in order of time, except by ``pieces``. Events of one process
    stay in the order in which they were written.

    Args:
      decoder: a decoder that reads only some fields of the events, which is faster. It must know all kinds of
        events in AnyEvent. None: all fields are decoded.

    Attributes:
      damaged: number of lines so far that are not events or are too long, and of logs that were not read to
        their end because of a limit.
    """

    def __init__(self, run: RunDir, decoder: Decoder | None = None) -> None:
        self.run = run
        self._decoder = decoder
        self._files: dict[Path, _File] = {}

    @property
    def damaged(self) -> int:
        return sum(f.damaged for f in self._files.values())

    def poll(self) -> list[AnyEvent | Unknown]:
        """Return the events that were written since the last call, merged by time."""
        return [event for _, event in self.entries()]

    def entries(
        self, progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[str, AnyEvent | Unknown]]:
        """Return (name of the log, event) for each event that was written since the last call, merged by
        time. ``progress``, if any, is called with (bytes read so far, bytes to read)."""
        return list(self.stream(progress))

    def stream(
        self, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[tuple[str, AnyEvent | Unknown]]:
        """Yield (name of the log, event) for each event that was written since the last call, merged by time.
        The logs are read in pieces, so that not all events are in memory. ``progress``, if any, is called
        with (bytes read so far, bytes to read)."""
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
            # The clock of a process may be set back. The running maximum keeps the order of its events.
            latest, log = 0, path.stem
            for n, event in enumerate(event for piece in f.pieces(counted, size) for event in piece):
                latest = max(latest, event.t_ns)
                yield latest, source, n, log, event

        logs = [keyed(source, path, f) for source, (path, f) in enumerate(self._files.items())]
        for *_, log, event in heapq.merge(*logs, key=lambda k: k[:3]):
            yield log, event

    def pieces(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield (name of the log, list of events) for the events that were written since the last call. The
        logs come one after the other, not merged by time. Each list is read from about CHUNK bytes."""
        self._begin(None)
        for path, f in self._files.items():
            for piece in f.pieces():
                yield path.stem, piece

    def _begin(self, progress: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
        """Look for new logs in the run, and set how much memory this reading may take. Return a function that
        is called with the number of bytes just read, and calls ``progress`` with (bytes read so far, bytes to
        read); None if ``progress`` is None."""
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
        """Return {name of a log: the numbers in the ``.counts`` file beside it}, the present values of
        counters, for the logs that earlier calls have read. The field ``cell`` of an event is an index into
        these numbers."""
        return {path.stem: found for path in self._files if len(found := counts.read(path))}

    def _unread(self) -> int:
        """Return how many bytes of the known logs are not read yet."""
        total = 0
        for path, f in self._files.items():
            try:
                total += max(0, files.status(path, within=self.run.path).st_size - f.offset)
            except OSError:
                continue
        return total


def read(run: RunDir) -> Iterator[AnyEvent | Unknown]:
    """Yield all events of ``run`` that are recorded so far, merged by time. All are read before the first is
    yielded."""
    yield from Reader(run).poll()
