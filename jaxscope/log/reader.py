"""Events back from a run directory: decoded, merged by time, followed while they are written.

Tolerates what a log in the real world has: a torn last line (kill -9), a line damaged in the
middle, kinds from a newer version, processes that appear later. Knows nothing of their meaning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from jaxscope.log import counts
from jaxscope.log.store import RunDir
from jaxscope.schema.events import AnyEvent, Unknown

_decoder = msgspec.json.Decoder(AnyEvent)
CHUNK = 1 << 20


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
        events: list[AnyEvent | Unknown] = []
        try:
            with self.path.open("rb") as f:
                if os.fstat(f.fileno()).st_size <= self.offset:
                    return events
                f.seek(self.offset)
                rest = b""
                while chunk := f.read(CHUNK):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        self.offset += len(line) + 1
                        event = decode(line) if line.strip() else None
                        if event is not None:
                            events.append(event)
                        elif line.strip():
                            self.damaged += 1
                    if progress is not None:
                        progress(len(chunk))
        except OSError:
            pass
        return events


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
        for path in self.run.logs():
            self._files.setdefault(path, _File(path))
        told: Callable[[int], None] | None = None
        if progress is not None:
            total, done = self._unread(), 0

            def told(count: int) -> None:
                nonlocal done
                done += count
                progress(done, max(done, total))

        batches = [(path.stem, f.read(told)) for path, f in self._files.items()]
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
