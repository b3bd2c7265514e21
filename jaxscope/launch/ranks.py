"""Start the processes of a job on this machine, and wait for their ends: ``jaxscope launch``. A rank is the
number of a process in the job, or the process itself."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from jaxscope.launch import job
from jaxscope.launch.runner import ENDS

GRACE_S = 10.0  # between SIGTERM and SIGKILL for the other ranks, after one rank has failed
RECORDED_S = 5.0  # maximal wait until the end of a killed program is recorded
POLL_S = 0.05
FAILED_BY_SIGNAL = 128
PIECE = 1 << 16


class Rank(NamedTuple):
    """One process of the job: its rank ``number``, from 0, and the ``process``, a ``jaxscope run``."""

    number: int
    process: subprocess.Popen[bytes]


def environment(environ: Mapping[str, str], rank: int, size: int, port: int, name: str) -> dict[str, str]:
    """Return the environment variables for one process of a job.

    The variables of ``environ`` are kept, except JAXSCOPE_RUN and JAXSCOPE_OPTIONS. Variables that name the
    job and the rank are set: for jaxscope (JAXSCOPE_JOB, ...), for JAX (JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES, JAX_PROCESS_ID), and some of Slurm's (SLURM_PROCID, ...), which
    ``jax.distributed.initialize()`` reads. JAX_PLATFORMS=cpu, JAX_CPU_COLLECTIVES_IMPLEMENTATION=gloo and
    PYTHONUNBUFFERED=1 are added if ``environ`` does not set these variables.

    Args:
      environ: the variables of this process.
      rank: the number of the process in the job.
      size: the number of processes.
      port: the TCP port on which rank 0 runs JAX's coordinator.
      name: the name of the job.
    """
    own = {
        job.NAME: name,
        job.RANK: str(rank),
        job.RANKS: str(size),
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(size),
        "JAX_PROCESS_ID": str(rank),
        "SLURM_JOB_ID": str(port),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": str(size),
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
    }
    inherited = {k: v for k, v in environ.items() if k not in (job.INSIDE, "JAXSCOPE_OPTIONS")}
    chosen = {"JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo", "PYTHONUNBUFFERED": "1"}
    return {**chosen, **inherited, **own}


def free_port() -> int:
    """Return a TCP port of this machine that no process uses now."""
    with socket.socket(socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET) as s:
        s.bind(("", 0))
        return int(s.getsockname()[1])


def run(argv: Sequence[str], size: int, name: str | None = None) -> tuple[int, str]:
    """Run the command ``argv``, a ``jaxscope run ...``, in ``size`` processes (ranks) of one job, and print
    their output, each line with the number of its process. If a process fails, the others are ended. Signals
    that end a program (ENDS) are forwarded to all processes; a second such signal kills them.

    ``name`` is the name of the job; None: a random name. Return (exit code, name of the job). The exit code
    is that of the first process that failed (128 + N if signal N ended the process), or 0.
    """
    port, name = free_port(), name or f"local-{secrets.token_hex(4)}"
    before = {number: signal.getsignal(number) for number in ENDS}
    ranks: list[Rank] = []
    signaled: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        # A rank that waits for another rank in XLA runs no Python, and so no handler for the signal. A second
        # signal kills it.
        for each in ranks:
            _send(each, signal.SIGKILL if signaled else number)
        signaled.append(number)

    try:
        for number in ENDS:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, pass_on)
        for rank in range(size):
            # The rank has its own process group, so that it gets the Ctrl-C of the terminal only once, from
            # pass_on.
            process = subprocess.Popen(
                argv,
                env=environment(os.environ, rank, size, port, name),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
            ranks.append(Rank(rank, process))
        return _wait(ranks), name
    finally:
        for left in ranks:
            if left.process.poll() is None:
                _send(left, signal.SIGKILL)
                left.process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


def _send(rank: Rank, number: int) -> None:
    """Send signal ``number`` to the program of ``rank``: to its ``jaxscope run``, which forwards signals.
    SIGKILL cannot be forwarded, so it is sent to the program itself."""
    with contextlib.suppress(OSError):
        if number == signal.SIGKILL:
            _kill(rank.process)
        else:
            rank.process.send_signal(number)  # to jaxscope run, which forwards it to the program


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program that ``process``, a ``jaxscope run``, has started, and wait for the end of
    ``process``. After RECORDED_S seconds, or where the children are unknown (macOS), kill the whole process
    group."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with contextlib.suppress(OSError, ValueError):
        for pid in children.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(RECORDED_S)
            return
    os.killpg(process.pid, signal.SIGKILL)


def _wait(ranks: Sequence[Rank]) -> int:
    """Copy the output of all processes of the job until they have ended. Return the exit code of the first
    process that failed (128 + N if signal N ended the process), or 0. After a failure, the other processes
    get SIGTERM, and SIGKILL GRACE_S seconds later."""
    open_streams: dict[int, _Lines] = {}
    for rank in ranks:
        for stream, to in ((rank.process.stdout, sys.stdout), (rank.process.stderr, sys.stderr)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            open_streams[stream.fileno()] = _Lines(stream, rank.number, to.buffer)
    failed: int | None = None
    kill_at: float | None = None
    while True:
        ready, _, _ = select.select(list(open_streams), [], [], POLL_S)
        for fd in ready:
            if not open_streams[fd].copy():
                open_streams.pop(fd).close()
        ended = [rank for rank in ranks if rank.process.poll() is not None]
        if failed is None:
            wrong = next((r for r in ended if r.process.returncode), None)
            if wrong is not None:
                failed, kill_at = wrong.process.returncode, time.monotonic() + GRACE_S
                others = [rank for rank in ranks if rank not in ended]
                _report(wrong, others)
                for rank in others:
                    _send(rank, signal.SIGTERM)
        elif kill_at is not None and time.monotonic() > kill_at:
            kill_at = None
            for rank in ranks:
                if rank not in ended:
                    _send(rank, signal.SIGKILL)
        if len(ended) == len(ranks) and not ready:  # a child of a program may never close its output
            for lines in open_streams.values():
                lines.close()
            return 0 if failed is None else failed if failed >= 0 else FAILED_BY_SIGNAL - failed


def _report(failed: Rank, running: Sequence[Rank]) -> None:
    """Print that the process ``failed`` of the job has failed, and that jaxscope ends ``running``, the other
    processes."""
    code = failed.process.returncode
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    waiting = (
        f"; ending the other {len(running)}"
        if len(running) > 1
        else "; ending the other process"
        if running
        else ""
    )
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"jaxscope: rank {failed.number} ended with {how}{waiting}\n")
        sys.stderr.flush()


class _Lines:
    """Copies the output of one process of the job to stdout or stderr of this process, with its rank before
    each line: ``[3] text``."""

    def __init__(self, stream: BinaryIO | object, rank: int, output: BinaryIO) -> None:
        self._stream: BinaryIO = stream  # type: ignore[assignment]
        self._prefix = f"[{rank}] ".encode()
        self._output = output
        self._begun = b""

    def copy(self) -> bool:
        """Copy the complete lines that can be read without waiting. Return True if more may follow, False at
        the end of the stream."""
        try:
            data = os.read(self._stream.fileno(), PIECE)
        except BlockingIOError:
            return True
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._put(lines)
        return bool(data)

    def close(self) -> None:
        """Copy an incomplete last line, and close the stream."""
        if self._begun:
            self._put([self._begun])
            self._begun = b""
        self._stream.close()

    def _put(self, lines: Sequence[bytes]) -> None:
        """Write ``lines`` with the rank before each line; do nothing if the output is closed."""
        if lines:
            with contextlib.suppress(OSError, ValueError):
                self._output.write(b"".join(self._prefix + line + b"\n" for line in lines))
                self._output.flush()
