"""The queue of programs that are to be compiled for targets (other accelerators). Each program is a job. The
queue consists of files in the directory ``targets/`` of a run:

    <id>.mlir    the module
    <id>.job     the target and the compile options
    <id>.result  the result, until it is in the log of the run
    <id>.done    empty; the result is in the log, and the files above are removed
    <id>.lost    the former ``.job``, if the compiler crashed or took too long; the module is kept
    <id>.tried   one byte for each attempt
    alive        changed every second while a worker (a process that compiles) runs
    behind       the processes of other runs for which the worker waits
    closed       empty; no more jobs will come

Files are written under another name and then renamed, so that no reader sees an incomplete file. The worker
polls for jobs, passes each to the compiler's own process, and polls for the result.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jaxscope.log import files
from jaxscope.log.liveness import STALE_S
from jaxscope.log.store import RunDir
from jaxscope.schema.events import TargetCompiled
from jaxscope.schema.targets import Target

_ID = re.compile(r"[0-9a-f]{16}")
MAX_JOB, MAX_MODULE, MAX_BEHIND = 16 << 20, 1 << 30, 1 << 16  # bytes
OK, EXHAUSTED, FAILED, CRASHED, LATE, MISSING = "ok", "exhausted", "failed", "crashed", "late", "missing"


class Job(msgspec.Struct, frozen=True):
    """One program to compile for a target (another accelerator).

    Attributes:
      id: a hash of the module, the compile options and the target.
      partitions: number of devices on which the program runs.
      positions: for each of these devices, in mesh order, its position among the devices of the target; None:
        the first ``partitions`` devices of the target.
      tuple_arguments, propagate_to_inputs, propagate_to_outputs, options: compile options as JAX passes them
        to the compiler.
      shardy: whether the program uses the Shardy partitioner; None: JAX's default.
    """

    id: str
    target: Target
    partitions: int
    positions: list[int] | None = None
    tuple_arguments: bool = False
    propagate_to_inputs: list[bool] = []
    propagate_to_outputs: list[bool] = []
    options: dict[str, str | int | float | bool] = {}
    shardy: bool | None = None


# Created at import, because msgspec 0.22 crashes if two threads are the first to decode a type.
_JOBS, _RESULTS = msgspec.json.Decoder(Job), msgspec.json.Decoder(TargetCompiled)
_PROCESSES = msgspec.json.Decoder(tuple[int, ...])


class Queue:
    """The queue of one run, as files: the jobs (programs to compile for targets, which are other
    accelerators), and their results."""

    def __init__(self, run: RunDir) -> None:
        self._run = run.path
        self.path = run.path / "targets"

    def put(self, job: Job, module: bytes) -> bool:
        """Add ``job`` to the queue, and return True. If this job is in the queue already, or its compilation
        has ended (with or without success), do nothing and return False. ``module`` is the program as MLIR
        bytecode.

        Raises:
          OSError: the disk is full, or the directory cannot be written.
        """
        self.make()
        if self._is(self._file(job.id, "job")) or self._is(self._file(job.id, "done")):
            return False
        self._write(self._file(job.id, "mlir"), module)
        self._write(self._file(job.id, "job"), msgspec.json.encode(job))
        return True

    def waiting(self) -> list[Path]:
        """Return the files (``<id>.job``) of the jobs (programs to compile for targets) whose result is not
        in the log of the run yet, the oldest first."""
        found = []
        for path in self._all(".job"):
            with contextlib.suppress(OSError):  # another process has just removed it
                found.append((files.status(path, within=self._run).st_mtime_ns, path.name, path))
        return [path for _, _, path in sorted(found)]

    def _all(self, suffix: str) -> list[Path]:
        """Return the files ``<id>`` + ``suffix`` of the queue, in no particular order. Empty if the directory
        cannot be read."""
        try:
            found = [self.path / name for name in files.names(self.path, within=self._run)]
            return [p for p in found if p.suffix == suffix and _ID.fullmatch(p.stem)]
        except OSError:
            return []

    def job(self, path: Path) -> Job:
        """Read a job (the target and the compile options of a program) from its file ``path`` (``<id>.job``).

        Raises:
          OSError: the file was removed.
          msgspec.MsgspecError: the file is damaged.
        """
        return _JOBS.decode(files.read(path, MAX_JOB, within=self._run))

    def module(self, id: str) -> bytes:
        """Return the program of the job ``id`` (a program to compile for a target), as MLIR bytecode. Raises
        OSError if its file was removed."""
        return files.read(self._file(id, "mlir"), MAX_MODULE, within=self._run)

    def put_result(self, result: TargetCompiled) -> None:
        """Store ``result``, the result of compiling one program, in a file. The compiler's process calls this
        method; the process that started the compiler reads the file with ``result_of``, and writes the result
        to the log. ``result.target`` may be missing."""
        self._write(self._file(result.program, "result"), msgspec.json.encode(result))

    def result_of(self, id: str) -> TargetCompiled | None:
        """Return the result of the job ``id`` (a program to compile for a target), until ``done`` removes it.
        Return None if there is no result yet, or its file is unreadable."""
        try:
            found = _RESULTS.decode(files.read(self._file(id, "result"), MAX_JOB, within=self._run))
        except (OSError, msgspec.MsgspecError):
            return None
        return found if found.program == id else None

    def done(self, id: str, *, keep: bool = False) -> None:
        """Mark the job ``id`` (a program compiled for a target) as done and remove its files, because its
        result is in the log of the run. With ``keep``, the module is kept and the job is marked as lost, so
        that ``again`` can queue it once more."""
        with contextlib.suppress(OSError):
            files.touch(self._file(id, "done"), within=self._run)
        with contextlib.suppress(OSError):
            if keep:
                files.rename(self._file(id, "job"), f"{id}.lost", within=self._run)
        for kind in ("job", "result", "tried", *(() if keep else ("mlir", "lost"))):
            with contextlib.suppress(OSError):
                files.remove(self._file(id, kind), within=self._run)

    def again(self) -> int:
        """Put the lost jobs, whose compiler crashed or took too long, back into the queue, and forget how
        often each job in the queue was attempted. Return how many jobs are in the queue afterwards."""
        for path in self._all(".lost"):
            with contextlib.suppress(OSError):
                files.rename(path, f"{path.stem}.job", within=self._run)
                files.remove(path.with_suffix(".done"), within=self._run)
        waiting = self.waiting()
        for path in waiting:
            with contextlib.suppress(OSError):
                files.remove(path.with_suffix(".tried"), within=self._run)
        return len(waiting)

    def count_attempt(self, id: str) -> int:
        """Count one more attempt to compile the job ``id`` (a program to compile for a target). Return the
        number of earlier attempts; 0 if this number cannot be read."""
        path = self._file(id, "tried")
        try:
            before = files.status(path, within=self._run).st_size
        except OSError:
            before = 0
        with contextlib.suppress(OSError):
            files.extend(path, b".", within=self._run)
        return before

    def beat(self) -> None:
        """Record that a process is compiling the programs in the queue, or is about to. The process calls
        this method every second."""
        with contextlib.suppress(OSError):
            self.make()
            files.touch(self.path / "alive", within=self._run)

    def wait_behind(self, processes: Sequence[int]) -> None:
        """Record that the jobs of this run wait for other processes, which compile for other runs.
        ``processes`` are their ids; empty: this run no longer waits."""
        with contextlib.suppress(OSError):
            if processes:
                self._write(self.path / "behind", msgspec.json.encode(processes))
            else:
                files.remove(self.path / "behind", within=self._run)

    def behind(self) -> tuple[int, ...]:
        """Return the ids of the processes, compiling for other runs, for which this run waits. Empty if it
        does not wait, or if no process works on its queue now."""
        try:
            if files.status(self.path / "alive", within=self._run).st_mtime < time.time() - STALE_S:
                return ()
            return _PROCESSES.decode(files.read(self.path / "behind", MAX_BEHIND, within=self._run))
        except (OSError, msgspec.MsgspecError):
            return ()

    def abandoned(self) -> frozenset[str]:
        """Return the ids of the jobs (programs to compile for targets) that probably no process will compile:
        for STALE_S seconds, they have been in the queue and no process has worked on the queue."""
        waiting = self.waiting()
        if not waiting:
            return frozenset()
        oldest = time.time() - STALE_S
        try:
            alive = files.status(self.path / "alive", within=self._run).st_mtime > oldest
        except OSError:
            alive = False
        return frozenset() if alive else frozenset(p.stem for p in waiting if self._before(p, oldest))

    def lost(self) -> list[str]:
        """Return the ids of the jobs (programs to compile for targets) whose compilation crashed or took too
        long."""
        return [path.stem for path in self._all(".lost")]

    def close(self) -> None:
        """Record that the program will add no more jobs to the queue."""
        with contextlib.suppress(OSError):
            self.make()
            files.touch(self.path / "closed", within=self._run)

    @property
    def closed(self) -> bool:
        """Return whether the program adds no more jobs to the queue (``close`` was called)."""
        return self._is(self.path / "closed")

    def make(self) -> None:
        """Create the directory of the queue if it is missing. Raises OSError if it cannot be created, or if a
        link has its name."""
        files.make_directory(self.path, within=self._run)

    def _file(self, id: str, kind: str) -> Path:
        return self.path / f"{id}.{kind}"

    def _is(self, path: Path) -> bool:
        return files.is_regular(path, within=self._run)

    def _write(self, path: Path, data: bytes) -> None:
        files.write(path, data, within=self._run)

    def _before(self, path: Path, moment: float) -> bool:
        """Return whether the file ``path`` was last changed before ``moment``, in seconds since 1970. False
        if there is no such file."""
        try:
            return files.status(path, within=self._run).st_mtime < moment
        except OSError:
            return False  # another process has just removed it
