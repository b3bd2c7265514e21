"""Events back from a run directory: decoded, merged by time, followed while they are written.

Tolerates what a log in the real world has: a torn last line (kill -9), a line damaged in the
middle, kinds from a newer version, processes that appear later. Knows nothing of their meaning.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from jaxscope.log import counts
from jaxscope.log.store import RunDir
from jaxscope.schema.events import AnyEvent, Unknown

_decoder = msgspec.json.Decoder(AnyEvent)
CHUNK = 1 << 20  # bytes read at a time, of all logs together
LEAST = 1 << 16  # of one of many


def decode(line: bytes) -> AnyEvent | Unknown | None:
    """One line of a log. None: not an event at all (damaged)."""
    try:
        event: AnyEvent = _decoder.decode(line)
        return event
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    try:
        raw = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if isinstance(raw, dict) and isinstance(raw.get("kind"), str):
        return Unknown(kind=raw["kind"], raw=raw)
    return None


class _File:
    """Reads one log to the last whole line, again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.damaged = 0

    def read(self, progress: Callable[[int], None] | None = None) -> list[AnyEvent | Unknown]:
        """The events that are new."""
        return [event for piece in self.pieces(progress) for event in piece]

    def pieces(
        self, progress: Callable[[int], None] | None = None, size: int = CHUNK
    ) -> Iterator[list[AnyEvent | Unknown]]:
        """The events that are new, those of about ``size`` bytes at a time; between them the file is not open."""
        while lines := self._lines(size):
            before = self.offset
            events: list[AnyEvent | Unknown] = []
            for line in lines:
                self.offset += len(line) + 1
                event = decode(line) if line.strip() else None
                if event is not None:
                    events.append(event)
                elif line.strip():
                    self.damaged += 1
            if progress is not None:
                progress(self.offset - before)
            yield events

    def _lines(self, size: int) -> list[bytes]:
        """Whole lines from ``offset`` on, at least one where there is one."""
        lines: list[bytes] = []
        try:
            with self.path.open("rb") as f:
                if os.fstat(f.fileno()).st_size <= self.offset:
                    return lines
                f.seek(self.offset)
                rest = b""
                while not lines and (chunk := f.read(size)):
                    *lines, rest = (rest + chunk).split(b"\n")
        except OSError:
            pass
        return lines


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
            self._files.setdefault(path, _File(path))
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
                total += max(0, path.stat().st_size - f.offset)
            except OSError:
                continue
        return total


def read(run: RunDir) -> Iterator[AnyEvent | Unknown]:
    """Every event there is now."""
    yield from Reader(run).poll()
