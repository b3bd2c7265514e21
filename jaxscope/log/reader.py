"""Events back from a run directory: decoded, merged by time, followed while they are written.

Tolerates what a log in the real world has: a torn last line (kill -9), a line damaged in the
middle, kinds from a newer version, processes that appear later. Knows nothing of their meaning.
"""

from __future__ import annotations

import heapq
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from jaxscope.log import counts, files
from jaxscope.log.store import LAST, LAST_BYTES, RunDir
from jaxscope.schema.events import MAIN, AnyEvent, RunStarted, Unknown


class _Kind(msgspec.Struct):
    """What is kept of an event of a kind that is not known: a newer version's, or nobody's."""

    kind: str


class _Timed(_Kind):
    t_ns: int = 0
    pid: int = 0


_decoder = msgspec.json.Decoder(AnyEvent)
_timed_decoder, _kind_decoder = msgspec.json.Decoder(_Timed), msgspec.json.Decoder(_Kind)
_ALIKE, _LONG = (
    bytes.maketrans(b"123456789", b"0" * 9),
    b"0" * 21,
)  # no number of ours is as long; a name may be
MOST = 10**21
MAX_KIND = 200  # letters
MAX_KEPT_BYTES = 1 << 16  # of an event of a kind that is not known; of a longer one its kind and time alone
CHUNK = 1 << 20  # bytes read at a time, of all logs together
LEAST = 1 << 16  # of one of many
# What is read of a log: more is damaged or hostile. The longest line that capture writes, the key of a call with
# 100,000 arguments, has about 10 MB and 1 million values.
MAX_LINE_BYTES = 32 << 20
MAX_VALUES = 2_000_000  # of one line
MAX_LOG_BYTES = (1 << 30) + (64 << 20)  # the writer ends at 1 GiB
MAX_GROWTH = 640 << 20  # bytes of memory that the events of one look may take


def decode(line: bytes) -> AnyEvent | Unknown | None:
    """One line of a log. None: not an event at all (damaged)."""
    try:
        event: AnyEvent = _decoder.decode(line)
        if _LONG in line.translate(_ALIKE) and not _sound(msgspec.to_builtins(event)):
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
    for decoder in (_timed_decoder, _kind_decoder):
        try:
            found = decoder.decode(line)  # the rest may be anything, of any size: it is passed over
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
        raw = {"t_ns": found.t_ns, "pid": found.pid} if isinstance(found, _Timed) else {}
        return Unknown(kind=found.kind[:MAX_KIND], raw=raw)
    return None


def main_log(run: RunDir) -> Path | None:
    """The log of the process that the user started; None where there is none (yet)."""
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
    """Reads one log to the last whole line, again and again. A line that is too long counts as damaged."""

    def __init__(self, path: Path, within: Path, room: Callable[[], bool] = lambda: True) -> None:
        self.path = path
        self.offset = 0
        self.damaged = 0
        self.room = room  # is there memory for more?
        self._within = within
        self._torn = -1  # size of the file when it had no whole line more
        self._skipping = False  # the line at ``offset`` has begun before, and is too long
        self._full = False  # nothing more is read
        self.last = False  # has the event that its recording stopped been read?

    def read(self, progress: Callable[[int], None] | None = None) -> list[AnyEvent | Unknown]:
        """The events that are new."""
        return [event for piece in self.pieces(progress) for event in piece]

    def pieces(
        self, progress: Callable[[int], None] | None = None, size: int = CHUNK
    ) -> Iterator[list[AnyEvent | Unknown]]:
        """The events that are new, those of about ``size`` bytes at a time; between them the file is not open."""
        before = self.offset
        while lines := self._lines(size):
            events: list[AnyEvent | Unknown] = []
            for line in lines:
                self.offset += len(line) + 1
                self._take(line, events)
            if progress is not None:
                progress(self.offset - before)
            yield events
            before = self.offset
        if (last := self._stopped()) is not None:
            yield [last]

    def _stopped(self) -> AnyEvent | Unknown | None:
        """The event that the recording stopped, where the log itself had no room for it; None: as before."""
        if self.last:
            return None
        try:
            data = files.read(self.path.with_suffix(LAST), LAST_BYTES, within=self._within)
        except OSError:
            return None
        event = decode(data.rstrip(b"\0"))
        self.last = event is not None
        return event

    def _lines(self, size: int) -> list[bytes]:
        """Whole lines from ``offset`` on, at least one where there is one; past those that are too long."""
        try:
            with files.open_regular(self.path, within=self._within) as f:
                end = os.fstat(f.fileno()).st_size
                if self._full or end <= self.offset or end == self._torn:
                    return []
                f.seek(self.offset)
                begun: list[bytes] = []  # of a line that goes on
                held = 0
                while chunk := f.read(size):
                    if self.offset > MAX_LOG_BYTES or not self.room():
                        self._full = True
                        self.damaged += 1
                        return []
                    if b"\n" in chunk:
                        *lines, _ = chunk.split(b"\n")
                        lines[0] = b"".join([*begun, lines[0]])
                        if self._skipping:
                            self._skipping = False
                            self.offset += len(lines.pop(0)) + 1
                        if lines:
                            return lines
                        f.seek(self.offset)
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
        return []

    def _take(self, line: bytes, events: list[AnyEvent | Unknown]) -> None:
        if not line.strip():
            return
        event = decode(line) if len(line) <= MAX_LINE_BYTES and _values(line) <= MAX_VALUES else None
        if event is not None:
            events.append(event)
        else:
            self.damaged += 1


def _sound(value: object) -> bool:
    """Is every whole number in plain data one that can be divided? 10^400 is no size, no time and no count."""
    if isinstance(value, int):
        return abs(value) < MOST
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return all(map(_sound, inside))


def _values(line: bytes) -> int:
    """About how many values a line of JSON holds; 0 of a short one, which cannot hold many."""
    return sum(map(line.count, (b",", b"[", b"{"))) if len(line) > CHUNK else 0


def _room() -> Callable[[], bool]:
    """Tells whether this process has grown by less than MAX_GROWTH since."""
    unit = 1 if sys.platform == "darwin" else 1024

    def used() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    before = used()
    return lambda: used() - before < MAX_GROWTH


class Reader:
    """Follows a run's logs.

    ``entries`` returns what is new since the last call as (log, event), in order of time across
    processes (within a process always in the order written); ``log`` is the name of the file, which
    tells a recycled process id from its predecessor. ``damaged`` counts lines that were no events.
    """

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._files: dict[Path, _File] = {}

    @property
    def damaged(self) -> int:
        return sum(f.damaged for f in self._files.values())

    def poll(self) -> list[AnyEvent | Unknown]:
        """``entries`` without the logs' names."""
        return [event for _, event in self.entries()]

    def entries(
        self, progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[str, AnyEvent | Unknown]]:
        """What is new; ``progress(done, total)`` is told the bytes read so far."""
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
        """``entries``, one after the other, without holding all of them in memory."""
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

    def _begin(self, progress: Callable[[int, int], None] | None) -> Callable[[int], None] | None:
        """Look for logs; what counts the bytes read from now on, and says so to ``progress``."""
        for path in self.run.logs():
            self._files.setdefault(path, _File(path, self.run.path))
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
        """By log, the numbers that grow between its events, as they are now."""
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
    """Every event there is now."""
    yield from Reader(run).poll()
