"""Finds what a test starts, for the mark ``subprocess``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"})
_started: list[str] | None = None  # None: nobody wants to know


def watch() -> None:
    """Begin to listen to Python's audit events. This cannot be undone: call it once in a process."""
    sys.addaudithook(_hear)


@contextmanager
def started() -> Iterator[list[str]]:
    """Collect the processes that this one starts meanwhile, as they come."""
    global _started
    _started = found = []
    try:
        yield found
    finally:
        _started = None


def _hear(event: str, args: tuple) -> None:
    if event in STARTS and _started is not None:
        _started.append(f"{event} {args[0]!r}" if args else event)
