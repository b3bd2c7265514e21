"""Read a run directory into a Run, once or again and again while it is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from jaxscope.log import files, liveness, ranks, reader, store
from jaxscope.log.jobs import Queue
from jaxscope.log.store import RunDir
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.schema.events import AnyEvent, ProgramExited, RunEnded, RunStarted, Unknown

Progress = Callable[[int, int], None]


class Queued(NamedTuple):
    """The programs for targets that wait: ids whose compiler's process has ended, and the process ids of
    other runs' compilers that the rest wait for."""

    abandoned: frozenset[str] = frozenset()
    behind: tuple[int, ...] = ()


class Batch(msgspec.Struct):
    """The new contents of the logs. ``taken``: number of entries folded into the run so far."""

    entries: list[tuple[str, AnyEvent | Unknown]]
    counts: dict[str, memoryview]
    damaged: int
    queue: Queued | None = None  # None: as before
    taken: int = 0

    @property
    def news(self) -> bool:
        return bool(self.entries) or self.queue is not None


class Tail:
    """Follow the logs of a run.

    ``poll`` reads the new events into ``run``; ``read`` (slow files) and ``take`` (no files) are its two
    halves, for a view that must not block.
    """

    def __init__(self, directory: RunDir, run: Run | None = None) -> None:
        from jaxscope.model.programs import Reader  # late: who reads only events needs no reader of texts

        self.directory = directory
        self.run = Run() if run is None else run
        texts = Reader(directory, self.run.overheard)
        self.run.texts_of, self.run.unreadable = texts.texts, texts.unreadable
        self.run.instructions_of = texts.instructions
        self._reader = reader.Reader(directory)
        self._queue = Queue(directory)
        self._queued = Queued()

    def poll(self, progress: Progress | None = None) -> list[tuple[AnyEvent | Unknown, Compilation | None]]:
        """Return the new events, each with the compilation it belongs to. ``progress(done, total)`` counts
        bytes."""
        return self.take(self.read(progress))[0]

    def read(self, progress: Progress | None = None) -> Batch:
        """Read and decode the new events without changing the run."""
        entries = self._reader.entries(progress)
        return self._batch(entries)

    def take(
        self, batch: Batch, limit: int | None = None
    ) -> tuple[list[tuple[AnyEvent | Unknown, Compilation | None]], bool]:
        """Fold at most ``limit`` events of ``batch``; return them, and whether the batch is done."""
        end = len(batch.entries) if limit is None else batch.taken + limit
        part = batch.entries[batch.taken : end]
        taken = [(event, self.run.apply(event, log)) for log, event in part]
        batch.taken += len(part)
        done = batch.taken >= len(batch.entries)
        if done:
            self._end(batch)
        return taken, done

    def load(self, progress: Progress | None = None) -> None:
        """Read the new events one by one into the run, without a list of them."""
        for log, event in self._reader.stream(progress):
            self.run.apply(event, log)
        self._end(self._batch([]))

    def _batch(self, entries: list[tuple[str, AnyEvent | Unknown]]) -> Batch:
        queued = Queued(self._queue.abandoned(), self._queue.behind())
        changed = queued != self._queued
        self._queued = queued
        return Batch(entries, self._reader.counts(), self._reader.damaged, queued if changed else None)

    def _end(self, batch: Batch) -> None:
        """Add the counters of the logs, after all events of ``batch``."""
        for log, numbers in batch.counts.items():
            self.run.count(log, numbers)
        self.run.damaged = batch.damaged
        if batch.queue is not None:
            for id, program in self.run.retargeted.items():
                program.abandoned = id in batch.queue.abandoned
                program.behind = batch.queue.behind
            self.run.version += 1
        self.run.ranks_here = _ranks_here(self.directory)
        self._update_liveness()

    def _update_liveness(self) -> None:
        how = state(self.run, self.directory)
        self.run.going_on = how == "running"
        self.run.alive_ns = alive_ns(how, self.directory)


def _ranks_here(place: RunDir) -> int | None:
    """Return how many processes of a job have recorded beside ``place``, and it; None: it cannot be read."""
    whole = ranks.whole_of(place)
    try:
        return 1 if whole is None else len(files.names(whole.path / store.RANKS, within=whole.path))
    except OSError:
        return None


def load(directory: RunDir, progress: Progress | None = None) -> Run:
    """Return the run recorded under ``directory`` so far."""
    tail = Tail(directory)
    tail.load(progress)
    return tail.run


class _Logged(Protocol):
    """A process and the log that it writes."""

    last_ns: int
    started: RunStarted | None
    ended: RunEnded | None


class _Ending(Protocol):
    """A run, or what is known of its end."""

    exited: ProgramExited | None

    @property
    def main(self) -> _Logged | None: ...

    def logs(self) -> Sequence[tuple[str, _Logged]]: ...


def alive_ns(how: str, directory: RunDir) -> int | None:
    """Return when a program in the state ``how`` was last known to be alive; None: it has no heartbeat."""
    beat = liveness.beat_of(directory.heartbeat) if how in ("running", "lost") else None
    if beat is None:
        return None  # only its events show it
    return time.time_ns() if how == "running" else int(beat.at * 1e9)


def state(run: _Ending, directory: RunDir) -> str:
    """Return ``exited``, ``stopped`` (an orderly end, exit code unknown), ``running`` or ``lost``.

    ``lost``: the log has no end, and no process writes it or watches the program, because the program was
      killed or the machine stopped.
    """
    if run.exited is not None:
        return "exited"
    if _watched(directory):
        return "running"
    main = run.main
    if main is not None and main.ended is not None:
        return "stopped"
    return "running" if any(_writes(directory, log, p) for log, p in run.logs()) else "lost"


def going_on(run: Run, directory: RunDir) -> bool | None:
    """Return whether a process still writes the logs or watches the program; None: unknown on this
    machine."""
    signs = [_writes(directory, log, p) for log, p in run.logs()]
    if run.exited is not None:
        return any(signs)  # a process without a lock was watched to its end
    if liveness.beat_of(directory.heartbeat) is not None:
        signs.append(_watched(directory))
    elif not signs and directory.meta.get("how") is not None:
        signs.append(liveness.recent(directory.started))  # made in code, which imports jax before it writes
    return True if True in signs else None if None in signs else False


def _watched(directory: RunDir) -> bool | None:
    beat = liveness.beat_of(directory.heartbeat)
    if beat is None:
        return False
    return beat.going if beat.going is not None else liveness.recent(beat.at) or None


def _writes(directory: RunDir, log: str, process: _Logged) -> bool | None:
    """Return whether ``process`` is alive and has not ended its log; None: unknown."""
    started = process.started
    if process.ended is not None or started is None:
        return False
    path = directory.events / f"{log}.jsonl"
    holds = liveness.holds(path, started.machine, started.locked) if started.machine is not None else None
    return holds if holds is not None else liveness.recent(process.last_ns / 1e9) or None
