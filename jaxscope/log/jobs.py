"""The queue of programs to compile for targets: files under ``targets/`` of a run.

``<id>.mlir`` is the module, ``<id>.job`` what its compilation needs besides; both are gone when the result is
in the log, and ``<id>.done`` marks that. If the compiler's process died, both stay, the job as ``<id>.lost``,
so that it can be queued again. Every file is written under another name and then renamed, so that no reader
sees a part of it. The worker polls for jobs, the program's side polls for results. ``alive`` is touched while
a worker runs, and ``behind`` names the processes of other runs for which that worker waits.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jaxscope.log import files
from jaxscope.log.store import RunDir
from jaxscope.schema.keys import Memory
from jaxscope.schema.targets import Target

_ID = re.compile(r"[0-9a-f]{16}")
MAX_JOB, MAX_MODULE = 16 << 20, 1 << 30  # bytes
STALE_S = 10.0  # ten missed beats: a loaded machine skips some
OK, EXHAUSTED, FAILED, CRASHED, LATE, MISSING = "ok", "exhausted", "failed", "crashed", "late", "missing"


class Job(msgspec.Struct, frozen=True):
    """One module to compile.

    Attributes:
      id: the id of the program: its text, compile options and target.
      partitions: number of devices on which the program runs.
      positions: the positions of those devices among the target's, in mesh order; None: the first
        ``partitions``.
      tuple_arguments, propagate_to_inputs, propagate_to_outputs, options: compile options as JAX passes
        them to the compiler.
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


class Result(msgspec.Struct, frozen=True):
    """The result of a job.

    Attributes:
      id: the id of the job.
      outcome: ok, exhausted (it does not fit), failed, crashed, late or missing
        (no such compiler is installed).
      seconds: seconds that the compiler took; None: it did not end.
      text: id of the stored HLO text.
      text_bytes: size of the HLO text.
      peak_bytes: peak memory on one device, if the compiler states it.
      error: the compiler's message, or how its process ended.
      compiler: name and version of the compiler.
      process_bytes: the largest memory that the compiler's process has used so far.
    """

    id: str
    outcome: str = OK
    seconds: float | None = None
    text: str | None = None
    text_bytes: int = 0
    memory: Memory | None = None
    peak_bytes: int | None = None
    cost: dict[str, float] = {}
    error: str | None = None
    compiler: str | None = None
    process_bytes: int | None = None


# Made here, once: two threads that are the first to decode a type crash msgspec (0.22).
_JOBS, _RESULTS = msgspec.json.Decoder(Job), msgspec.json.Decoder(Result)
_PROCESSES = msgspec.json.Decoder(tuple[int, ...])


class Queue:
    """The jobs of one run."""

    def __init__(self, run: RunDir) -> None:
        self._run = run.path
        self.path = run.path / "targets"

    def put(self, job: Job, module: bytes) -> bool:
        """Queue ``job``. Return False if it is already queued, or was queued before.

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
        """Return the job files, the oldest first."""
        found = []
        for path in self._all(".job"):
            with contextlib.suppress(OSError):  # another process has finished it
                found.append((files.status(path, within=self._run).st_mtime_ns, path.name, path))
        return [path for _, _, path in sorted(found)]

    def _all(self, suffix: str) -> list[Path]:
        try:
            found = [self.path / name for name in files.names(self.path, within=self._run)]
            return [p for p in found if p.suffix == suffix and _ID.fullmatch(p.stem)]
        except OSError:
            return []

    def job(self, path: Path) -> Job:
        """Read a job.

        Raises:
          OSError: the job's file was removed.
          msgspec.MsgspecError: the file is damaged.
        """
        return _JOBS.decode(files.read(path, MAX_JOB, within=self._run))

    def module(self, id: str) -> bytes:
        """Return the module's bytecode.

        Raises:
          OSError: the file was removed.
        """
        return files.read(self._file(id, "mlir"), MAX_MODULE, within=self._run)

    def answer(self, result: Result) -> None:
        """Write ``result``, for ``result_of`` to read."""
        self._write(self._file(result.id, "result"), msgspec.json.encode(result))

    def result_of(self, id: str) -> Result | None:
        """Return the result of a job; None: there is none yet."""
        try:
            found = _RESULTS.decode(files.read(self._file(id, "result"), MAX_JOB, within=self._run))
        except (OSError, msgspec.MsgspecError):
            return None
        return found if found.id == id else None

    def done(self, id: str, *, keep: bool = False) -> None:
        """Remove a job whose result is in the log; ``keep``: so that it can be queued again."""
        with contextlib.suppress(OSError):
            files.touch(self._file(id, "done"), within=self._run)
        with contextlib.suppress(OSError):
            if keep:
                files.rename(self._file(id, "job"), f"{id}.lost", within=self._run)
        for kind in ("job", "result", "tried", *(() if keep else ("mlir", "lost"))):
            with contextlib.suppress(OSError):
                files.remove(self._file(id, kind), within=self._run)

    def again(self) -> int:
        """Queue lost jobs again and reset the numbers of attempts. Return the number of waiting jobs."""
        for path in self._all(".lost"):
            with contextlib.suppress(OSError):
                files.rename(path, f"{path.stem}.job", within=self._run)
                files.remove(path.with_suffix(".done"), within=self._run)
        waiting = self.waiting()
        for path in waiting:
            with contextlib.suppress(OSError):
                files.remove(path.with_suffix(".tried"), within=self._run)
        return len(waiting)

    def tried(self, id: str) -> int:
        """Count an attempt at a job, and return the number of earlier ones; 0 if the disk is full."""
        path = self._file(id, "tried")
        try:
            before = files.status(path, within=self._run).st_size
        except OSError:
            before = 0
        with contextlib.suppress(OSError):
            files.extend(path, b".", within=self._run)
        return before

    def beat(self) -> None:
        """Mark that a process compiles, or is about to."""
        with contextlib.suppress(OSError):
            self.make()
            files.touch(self.path / "alive", within=self._run)

    def wait_behind(self, processes: Sequence[int]) -> None:
        """Note that compiling waits for ``processes``, which compile for other runs; empty: it no longer
        waits.
        """
        with contextlib.suppress(OSError):
            if processes:
                self._write(self.path / "behind", msgspec.json.encode(processes))
            else:
                (self.path / "behind").unlink()

    def behind(self) -> tuple[int, ...]:
        """Return the processes that compile for other runs and that this one waits for; empty: none."""
        try:
            if (self.path / "alive").stat().st_mtime < time.time() - STALE_S:
                return ()
            return _PROCESSES.decode((self.path / "behind").read_bytes())
        except (OSError, msgspec.MsgspecError):
            return ()

    def abandoned(self) -> frozenset[str]:
        """Return the jobs whose compiler's process and whose writer have both given no sign of life for
        long.
        """
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
        """Return the jobs whose compiler crashed."""
        return [path.stem for path in self._all(".lost")]

    def close(self) -> None:
        """Mark that no more jobs will come."""
        with contextlib.suppress(OSError):
            self.make()
            files.touch(self.path / "closed", within=self._run)

    @property
    def closed(self) -> bool:
        return self._is(self.path / "closed")

    def make(self) -> None:
        """Create the directory.

        Raises:
          OSError: the directory cannot be created, or there is a link with its name.
        """
        files.make_directory(self.path, within=self._run)

    def _file(self, id: str, kind: str) -> Path:
        return self.path / f"{id}.{kind}"

    def _is(self, path: Path) -> bool:
        return files.is_regular(path, within=self._run)

    def _write(self, path: Path, data: bytes) -> None:
        files.write(path, data, within=self._run)

    def _before(self, path: Path, moment: float) -> bool:
        try:
            return files.status(path, within=self._run).st_mtime < moment
        except OSError:
            return False  # finished under us
