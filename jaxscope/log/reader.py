"""Events back from a run directory: decoded, merged by time, followed while they are written.

Tolerates what a log in the real world has: a torn last line (kill -9), a line damaged in the
middle, kinds from a newer version, processes that appear later. Knows nothing of their meaning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from jaxscope.log.store import RunDir
from jaxscope.schema.events import AnyEvent, Unknown

_decoder = msgspec.json.Decoder(AnyEvent)
CHUNK = 8 << 20


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

    def read(self) -> list[AnyEvent | Unknown]:
        events: list[AnyEvent | Unknown] = []
        try:
            with open(self.path, "rb") as f:
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
        except OSError:
            pass
        return events


class Reader:
    """Follows a run's logs.

    ``poll`` returns what is new since the last call, in order of time across processes (within a
    process always in the order written). ``damaged`` counts lines that were no events.
    """

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._files: dict[Path, _File] = {}

    @property
    def damaged(self) -> int:
        return sum(f.damaged for f in self._files.values())

    def poll(self) -> list[AnyEvent | Unknown]:
        for path in self.run.logs():
            self._files.setdefault(path, _File(path))
        batches = [f.read() for f in self._files.values()]
        batches = [b for b in batches if b]
        if len(batches) == 1:
            return batches[0]
        # Clocks of one process may step back; its own order is kept by a running maximum.
        keyed: list[tuple[int, int, int, AnyEvent | Unknown]] = []
        for source, batch in enumerate(batches):
            latest = 0
            for n, event in enumerate(batch):
                latest = max(latest, event.t_ns)
                keyed.append((latest, source, n, event))
        keyed.sort(key=lambda k: k[:3])
        return [k[3] for k in keyed]


def read(run: RunDir) -> Iterator[AnyEvent | Unknown]:
    """Every event there is now."""
    yield from Reader(run).poll()
