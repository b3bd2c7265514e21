"""Read a run directory into a Run, once, or repeatedly while the program is recorded."""

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

Progress = Callable[[int, int], None]  # receives the number of bytes read so far, and of all bytes


class Queued(NamedTuple):
    """The queue of programs that are to be compiled for targets (machines given by ``--target``).

    Attributes:
      abandoned: ids of programs that will not be compiled, because the compiling process has ended.
      behind: ids of processes that compile for other runs. The programs of this run wait for them.
    """

    abandoned: frozenset[str] = frozenset()
    behind: tuple[int, ...] = ()


class Batch(msgspec.Struct):
    """What is new in the logs of a run since the last reading.

    Attributes:
      entries: (name of the log, event) of each new event.
      counts: the numbers in the counts file of each log, by name of the log.
      damaged: number of lines so far that are not events.
      queue: the programs that wait for a target's compiler; None: unchanged.
      taken: number of entries that are already added to the run.
    """

    entries: list[tuple[str, AnyEvent | Unknown]]
    counts: dict[str, memoryview]
    damaged: int
    queue: Queued | None = None
    taken: int = 0

    @property
    def news(self) -> bool:
        """Return whether there is anything new except counts."""
        return bool(self.entries) or self.queue is not None


class Tail:
    """Reads the logs of a run into the attribute ``run``: at first completely, later only their new lines.

    ``poll`` calls ``read``, which reads and decodes files and may be slow, and ``take``, which adds the
    events to the run. A view that must not block calls these two in different threads.

    Args:
      run: the run to which events are added; None: a new one.
    """

    def __init__(self, directory: RunDir, run: Run | None = None) -> None:
        from jaxscope.model.programs import Reader  # a slow import, which readers of events do not need

        self.directory = directory
        self.run = Run() if run is None else run
        texts = Reader(directory, self.run.overheard)
        self.run.texts_of, self.run.unreadable = texts.texts, texts.unreadable
        self.run.instructions_of = texts.instructions
        self.run.stored = texts.stored
        self._reader = reader.Reader(directory)
        self._queue = Queue(directory)
        self._queued = Queued()

    def poll(self, progress: Progress | None = None) -> list[tuple[AnyEvent | Unknown, Compilation | None]]:
        """Add the new events to the run. Return (event, compilation to which it belongs or None) for each
        event. ``progress`` is called with (bytes read so far, bytes to read)."""
        return self.take(self.read(progress))[0]

    def read(self, progress: Progress | None = None) -> Batch:
        """Read and decode the new events, and return them for ``take``. The run is not changed. ``progress``
        is called with (bytes read so far, bytes to read)."""
        return self._batch(self._reader.entries(progress))

    def take(
        self, batch: Batch, limit: int | None = None
    ) -> tuple[list[tuple[AnyEvent | Unknown, Compilation | None]], bool]:
        """Add the next events of ``batch`` to the run, at most ``limit``; all if ``limit`` is None. Return
        (list of (event, compilation to which it belongs or None) for the added events, whether the batch is
        finished)."""
        end = len(batch.entries) if limit is None else batch.taken + limit
        part = batch.entries[batch.taken : end]
        taken = [(event, self.run.apply(event, log)) for log, event in part]
        batch.taken += len(part)
        done = batch.taken >= len(batch.entries)
        if done:
            self._end(batch)
        return taken, done

    def load(self, progress: Progress | None = None) -> None:
        """Add the new events to the run one by one, without keeping a list of them, which saves memory.
        ``progress`` is called with (bytes read so far, bytes to read)."""
        for log, event in self._reader.stream(progress):
            self.run.apply(event, log)
        self._end(self._batch([]))

    def _batch(self, entries: list[tuple[str, AnyEvent | Unknown]]) -> Batch:
        """Return a batch of ``entries`` (log, event), with the current counts, and the queue of programs to
        compile for targets if it has changed."""
        queued = Queued(self._queue.abandoned(), self._queue.behind())
        changed = queued != self._queued
        self._queued = queued
        return Batch(entries, self._reader.counts(), self._reader.damaged, queued if changed else None)

    def _end(self, batch: Batch) -> None:
        """Add the counts, the number of damaged lines and the queue of ``batch`` to the run. All events of
        the batch must have been added before."""
        for log, numbers in batch.counts.items():
            self.run.count(log, numbers)
        self.run.damaged = batch.damaged
        if batch.queue is not None:
            for id, program in self.run.retargeted.items():
                program.abandoned = id in batch.queue.abandoned
                program.waits_for = batch.queue.behind
            self.run.version += 1
        self.run.ranks_here = _ranks_here(self.directory)
        self._update_liveness()

    def _update_liveness(self) -> None:
        """Store in the run whether the program still runs, and when it was last known to be alive."""
        how = state(self.run, self.directory)
        self.run.going_on = how == "running"
        self.run.alive_ns = alive_ns(how, self.directory)


def _ranks_here(place: RunDir) -> int | None:
    """Return how many ranks (processes) of a job have a recording in the job's directory. ``place`` is the
    directory of one rank. Return 1 if ``place`` belongs to no job, and None if the job's directory cannot be
    read."""
    whole = ranks.whole_of(place)
    try:
        return 1 if whole is None else len(files.names(whole.path / store.RANKS, within=whole.path))
    except OSError:
        return None


def load(directory: RunDir, progress: Progress | None = None) -> Run:
    """Return the run that is recorded in ``directory``, as far as it is recorded now. ``progress`` is called
    with (bytes read so far, bytes of all logs)."""
    tail = Tail(directory)
    tail.load(progress)
    return tail.run


class _Logged(Protocol):
    """The fields of a process that the function ``state`` reads: of a ``records.Process``, or of a process in
    a ``RankLog`` (a shorter record of a run, to compare ranks)."""

    last_ns: int
    started: RunStarted | None
    ended: RunEnded | None


class _Ending(Protocol):
    """The attributes of a recording (a ``Run`` or a ``RankLog``) that the function ``state`` reads. ``logs``
    returns (name of the log, process) for each log; ``main`` is the process that the user started."""

    exited: ProgramExited | None

    @property
    def main(self) -> _Logged | None: ...

    def logs(self) -> Sequence[tuple[str, _Logged]]: ...


def alive_ns(how: str, directory: RunDir) -> int | None:
    """Return when the program was last known to be alive (ns since the epoch), by the heartbeat file in
    ``directory``. ``how`` is the result of ``state``: if it is running, return the current time. None if
    there is no heartbeat, or if ``how`` is neither running nor lost."""
    beat = liveness.beat_of(directory.heartbeat) if how in ("running", "lost") else None
    if beat is None:
        return None  # only the times of its events are known
    return time.time_ns() if how == "running" else int(beat.at * 1e9)


def state(run: _Ending, directory: RunDir) -> str:
    """Return whether the program of ``run``, recorded in ``directory``, still runs: ``exited``, ``stopped``
    (an orderly end, with unknown exit code), ``running``, or ``lost`` (no end is recorded, and no process is
    known to write the log)."""
    if run.exited is not None:
        return "exited"
    if _runner_waits(directory):
        return "running"
    main = run.main
    if main is not None and main.ended is not None:
        return "stopped"
    return "running" if any(_writes(directory, log, p) for log, p in run.logs()) else "lost"


def going_on(run: Run, directory: RunDir) -> bool | None:
    """Return whether a process of the program of ``run``, or the process that waits for its end, is alive.
    ``directory`` is the run's directory. None if unknown, as for a run on another machine."""
    signs = [_writes(directory, log, p) for log, p in run.logs()]
    if run.exited is not None:
        return any(signs)  # the end is recorded, so only a child process with a lock may still write
    if liveness.beat_of(directory.heartbeat) is not None:
        signs.append(_runner_waits(directory))
    elif not signs and directory.meta.get("how") is not None:
        # jaxscope.record() has created the directory, and imports jax before it writes a log
        signs.append(liveness.recent(directory.started))
    return True if True in signs else None if None in signs else False


def _runner_waits(directory: RunDir) -> bool | None:
    """Return whether ``jaxscope run`` still waits for the end of the program, according to the heartbeat file
    in the run's ``directory``. False if there is no such file; None if unknown."""
    beat = liveness.beat_of(directory.heartbeat)
    if beat is None:
        return False
    return beat.going if beat.going is not None else liveness.recent(beat.at) or None


def _writes(directory: RunDir, log: str, process: _Logged) -> bool | None:
    """Return whether ``process`` is alive and still writes its log, which has the name ``log`` in the run's
    ``directory``. Return None if that is unknown."""
    started = process.started
    if process.ended is not None or started is None:
        return False
    path = directory.events / f"{log}.jsonl"
    machine = started.machine
    alive = liveness.writer_alive(path, machine, started.locked) if machine is not None else None
    return alive if alive is not None else liveness.recent(process.last_ns / 1e9) or None
