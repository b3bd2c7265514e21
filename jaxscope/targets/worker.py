"""Compile the queued jobs of one run until the queue is closed, and write the results to the run's log.

A job is one program to compile for one target, an accelerator that need not exist here. The recorded program
adds jobs while it runs. The command ``python -m jaxscope.targets.worker RUN`` compiles the jobs of RUN.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from jaxscope.log.jobs import CRASHED, FAILED, LATE, Queue
from jaxscope.log.liveness import beat_of
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema.events import TargetCompiled, TargetCompiling
from jaxscope.targets.process import Compiler, environment

POLL_S = 0.1
BEAT_S = 1.0
WAIT_S = 300.0  # longest wait for other runs' compilers; then compile at the same time, with less memory
EACH = 2 << 30  # bytes of memory that one compiler may take
TRIES = 2  # the most attempts at a job, if the worker is killed during it
DEAD_S = 15.0  # seconds without a heartbeat (written every second), after which jaxscope run counts as ended


class Worker:
    """Compiles the queued jobs of the run ``run``, and writes the results to its log. A job is one program to
    compile for one target, an accelerator that need not exist here.

    Args:
      command: the command that starts the compiler's process; None: ``jaxscope.targets.client`` in this
        Python.
      limit: seconds that a job may take.
    """

    def __init__(self, run: RunDir, command: Sequence[str] | None = None, limit: float = 3600.0) -> None:
        self._run = run
        self._queue = Queue(run)
        self._compiler = Compiler(run, command, limit)
        self._writer: Writer | None = None

    def once(self) -> None:
        """Compile the jobs that are in the queue now. If several workers of one run call this at the same
        time, each job is compiled by one of them."""
        with self._beating():
            for path in self._queue.waiting():
                self._compile_one(path)

    def drain(self) -> None:
        """Compile jobs until the queue is empty and no more jobs can come: the queue was closed, ``jaxscope
        run`` has ended, or the run directory was deleted."""
        with self._beating():
            while True:
                closed = self._queue.closed or self._abandoned()  # before waiting(), to miss no job
                waiting = self._queue.waiting()
                for path in waiting:
                    self._compile_one(path)
                if closed and not waiting:
                    return
                if not waiting:
                    time.sleep(POLL_S)

    @contextlib.contextmanager
    def _beating(self) -> Iterator[None]:
        """Write a heartbeat every second while the ``with`` statement runs. At the end, close the compiler's
        process and the log."""
        over = threading.Event()

        def beat() -> None:
            while not over.is_set():
                self._queue.beat()
                over.wait(BEAT_S)

        thread = threading.Thread(target=beat, daemon=True, name="jaxscope-beat")
        thread.start()
        try:
            yield
        finally:
            self._compiler.close()
            if self._writer is not None:
                self._writer.close()
            over.set()
            thread.join()

    def _compile_one(self, path: Path) -> None:
        """Compile the job in the file ``path``, and write the result to the log. First wait for other workers
        of the run, and for compilers of other runs (``compiler_slot``). A job that was tried TRIES times
        counts as crashed."""
        try:
            job = self._queue.job(path)
        except OSError:
            return  # gone
        except msgspec.MsgspecError as e:
            self._queue.done(path.stem)
            self._say(TargetCompiled(program=path.stem, outcome=FAILED, error=f"the job cannot be read: {e}"))
            return
        with _locked(self._queue.path / "lock"), compiler_slot(self._queue.wait_behind):
            if not path.exists():
                return  # another worker of this run has compiled it meanwhile
            self._say(TargetCompiling(program=job.id, target=job.target.name))
            tried = self._queue.count_attempt(job.id)
            if tried < TRIES:
                result = self._compiler.compile(job, path)
            else:
                message = f"jaxscope's compile worker was ended {tried} times during this compilation"
                result = TargetCompiled(program=job.id, outcome=CRASHED, error=message)
            self._say(msgspec.structs.replace(result, target=job.target.name))
            self._queue.done(job.id, keep=result.outcome in (CRASHED, LATE))

    def _say(self, event: TargetCompiling | TargetCompiled) -> None:
        """Write ``event`` to the log. The first event opens the log."""
        if self._writer is None:
            self._writer = Writer(self._run, first=lambda forked: event)
            self._writer.open()  # this writes ``event``
        else:
            self._writer.emit(event)

    def _abandoned(self) -> bool:
        """Return whether no more jobs can come although nobody closed the queue: the run directory was
        deleted, or ``jaxscope run``, if it recorded the program, has ended."""
        if not self._run.path.is_dir():
            return True
        beat = beat_of(self._run.heartbeat)
        if beat is None or beat.going is not None:
            return beat is not None and not beat.going
        return time.time() - beat.at > DEAD_S


def compiler_slots() -> int:
    """Return how many compilers may run at the same time on this machine: one for each 2 GiB (EACH) of
    memory, but at most one for each core and at least one."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # the limit of a container
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    # libtpu itself sets no limit: ``process.environment`` sets ALLOW_MULTIPLE_LIBTPU_LOAD.
    return max(1, min(memory // EACH, os.cpu_count() or 1))


@contextlib.contextmanager
def compiler_slot(waits: Callable[[Sequence[int]], None], limit: float = WAIT_S) -> Iterator[None]:
    """Wait until fewer than ``compiler_slots()`` compilers of this user run on this machine, for this or
    other runs. Then occupy one of the ``compiler_slots()`` while the ``with`` statement runs.

    Args:
      waits: is called with the ids of the compiling processes when the wait begins and when these ids change,
        and with [] when the wait is over.
      limit: seconds after which the wait ends in any case.
    """
    end, reported, fd = time.monotonic() + limit, list[int](), -1
    while fd < 0:
        holders = list[int]()
        for n in range(compiler_slots()):
            fd = _opened(Path(tempfile.gettempdir()) / f"jaxscope-targets-{os.getuid()}.{n}.lock")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holders.append(_holder(fd))
                os.close(fd)
                fd = -1
                continue
            except (OSError, ValueError):  # locks are not supported, or there is no file: continue without
                pass
            break
        if fd >= 0 or len(holders) < compiler_slots() or time.monotonic() > end:
            break
        if holders != reported:
            waits(holders)
            reported = holders
        time.sleep(POLL_S)
    if reported:
        waits([])
    try:
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
                os.pwrite(fd, str(os.getpid()).encode(), 0)
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _opened(path: Path) -> int:
    """Open the lock file ``path``, which is created if it does not exist, and return the file descriptor; -1
    if it cannot be opened, for example because it belongs to another user."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return -1


def _holder(fd: int) -> int:
    """Return the id of the process that has locked the file with the descriptor ``fd``, as written in the
    file. 0 if that process has not written it yet."""
    try:
        return int(os.pread(fd, 20, 0))
    except (OSError, ValueError):
        return 0


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the file at ``path`` while the ``with`` statement runs, so that only one worker of a run compiles
    at a time. Where files cannot be locked, do not wait."""
    fd = _opened(path)
    try:
        with contextlib.suppress(OSError, ValueError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def start(run: RunDir, environ: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a worker process that compiles the queued jobs of ``run``, and return the process. The worker is
    in a new session, so that it continues when this process has ended.

    ``environ`` are the environment variables of the recorded program; None: those of this process. XLA_FLAGS
    and LIBTPU_INIT_ARGS in it apply to the compiler, too.

    Raises:
      OSError: the worker cannot be started.
    """
    words = [sys.executable, "-m", "jaxscope.targets.worker", str(run.path)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        words,
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        cwd="/",
        env=environment(environ or os.environ),
        start_new_session=True,
    )


def main(directory: str) -> None:
    """Compile the jobs of the run in ``directory``, as ``Worker.drain`` does. This process ignores SIGINT
    (Ctrl-C) and SIGHUP (the terminal is closed)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Worker(RunDir(directory)).drain()


if __name__ == "__main__":
    main(sys.argv[1])
