"""A run directory on disk -> a Run, once or followed while it is written."""

from __future__ import annotations

import time
from collections.abc import Callable

from jaxscope.log import reader
from jaxscope.log.store import RunDir
from jaxscope.model.programs import Reader
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.schema.events import AnyEvent, Unknown

Progress = Callable[[int, int], None]
STALE_S = 10.0  # ten missed heartbeats: a loaded machine skips some


class Tail:
    """A Run that grows with its logs. ``poll`` takes in what is new."""

    def __init__(self, directory: RunDir, run: Run | None = None) -> None:
        self.directory = directory
        self.run = Run() if run is None else run
        self.run.texts_of = Reader(directory, self.run.overheard).texts
        self._reader = reader.Reader(directory)

    def poll(self, progress: Progress | None = None) -> list[tuple[AnyEvent | Unknown, Compilation | None]]:
        """The new events, each with the compilation it speaks of. ``progress(done, total)`` counts bytes."""
        taken: list[tuple[AnyEvent | Unknown, Compilation | None]] = []
        for log, event in self._reader.entries(progress):
            taken.append((event, self.run.apply(event, log)))
        for log, numbers in self._reader.counts().items():
            self.run.count(log, numbers)
        self.run.damaged = self._reader.damaged
        self.run.alive_ns = _alive_ns(self.run, self.directory)
        return taken


def load(directory: RunDir, progress: Progress | None = None) -> Run:
    """Everything recorded under ``directory`` so far."""
    tail = Tail(directory)
    tail.poll(progress)
    return tail.run


def _alive_ns(run: Run, directory: RunDir) -> int | None:
    """When the program was last known to be alive: now, or at the last heartbeat before it was lost."""
    try:
        beat = directory.heartbeat.stat().st_mtime_ns
    except OSError:
        return None  # nobody watches: only the events say
    return {"running": time.time_ns(), "lost": beat}.get(state(run, directory))


def state(run: Run, directory: RunDir) -> str:
    """``exited``, ``stopped`` (an orderly end, exit code unknown), ``running`` or ``lost``.

    ``lost``: the log ends without a word and nobody is watching any more: killed, or the machine went down.
    """
    if run.exited is not None:
        return "exited"
    try:
        if time.time() - directory.heartbeat.stat().st_mtime < STALE_S:
            return "running"
        watched = True
    except OSError:
        watched = False
    main = run.main
    if main is not None and main.ended is not None:
        return "stopped"
    if watched:
        return "lost"
    # Nobody watches a recording begun in code: only its own log says that it is alive.
    latest = max((p.last_ns for p in run.processes.values()), default=0)
    return "running" if time.time() - latest / 1e9 < STALE_S else "lost"
