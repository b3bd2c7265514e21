"""Run the compiler of a target (an accelerator that need not exist here) in a separate process, which
compiles one program after the other.

If a compilation ends the process, only this job fails, and the next job gets a new process. What the process
writes to stderr is kept for the error message of the failed job.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import site
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxscope.log import files
from jaxscope.log.jobs import CRASHED, LATE, Job, Queue
from jaxscope.log.store import RunDir
from jaxscope.schema.events import TargetCompiled

POLL_S = 0.02
# ``F1121 22:51:36.118198   22687 target.cc:1462] Check failed: ...``, the line of a fatal error of libtpu.
_FATAL = re.compile(r"^F\d{4} [\d:.]+ +\d+ (\S+:\d+\] .+)$", re.MULTILINE)
LOG_TAIL = 4_000  # bytes at the end of the process's stderr that are read for the error message
# Variables of the program that must not reach the compiler's process.
_NOT_OURS = ("JAXSCOPE", "JAXSCOPE_RUN", "JAXSCOPE_OPTIONS", "PYTHONSTARTUP", "JAX_NUM_CPU_DEVICES")


class Compiler:
    """Compiles the jobs of a run in a separate process, one at a time. A job is one program to compile for
    one target, an accelerator that need not exist here.

    Args:
      command: the command that starts the process; None: ``jaxscope.targets.client`` in this Python. The
        paths of the job files are written to its stdin, one in each line.
      limit: seconds that a job may take. After that the process is killed.
    """

    def __init__(self, run: RunDir, command: Sequence[str] | None = None, limit: float = 3600.0) -> None:
        self._run = run
        self._queue = Queue(run)
        self._command = list(command or [sys.executable, "-m", "jaxscope.targets.client", str(run.path)])
        self._limit = limit
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _log(self) -> Path:
        return self._queue.path / "compiler.log"

    def compile(self, job: Job, path: Path) -> TargetCompiled:
        """Compile the program of ``job`` for its target and return the result. If the compilation fails, the
        result has the error. ``path`` is the job's file.

        If a process that has served an earlier job ends during this job, the job is tried once more in a new
        process.
        """
        used = self._process is not None
        found = self._attempt(job, path)
        return self._attempt(job, path) if used and found.outcome == CRASHED else found

    def _attempt(self, job: Job, path: Path) -> TargetCompiled:
        """Give ``job`` to the compiler's process, and wait for the result, the end of the process or the time
        limit. In the last two cases, the result has the outcome ``crashed`` or ``late``."""
        started = time.monotonic()
        try:
            process = self._running()
            assert process.stdin is not None
            process.stdin.write(os.fsencode(path) + b"\n")
            process.stdin.flush()
        except OSError as e:
            self.close()
            message = f"the compiler's process cannot be started: {e}"
            return TargetCompiled(program=job.id, outcome=CRASHED, error=message)
        while True:
            found = self._queue.result_of(job.id)
            if found is not None:
                return found
            if process.poll() is not None:
                # It may have written the result just before its end.
                found = self._queue.result_of(job.id)
                message = f"{_how(process.returncode)}{self._last_words()}"
                self.close()
                return found or TargetCompiled(
                    program=job.id, outcome=CRASHED, seconds=time.monotonic() - started, error=message
                )
            if time.monotonic() - started > self._limit:
                self.close()
                message = f"stopped: not compiled within {self._limit:,.0f} s"
                return TargetCompiled(
                    program=job.id, outcome=LATE, seconds=time.monotonic() - started, error=message
                )
            time.sleep(POLL_S)

    def close(self) -> None:
        """End the compiler's process and its children, if it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            with contextlib.suppress(OSError):
                # It has its own session: the group holds only its children
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the compiler's process. If none runs, start a process."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a compiler's process, which writes its output to an empty ``compiler.log``, and return it."""
        self._queue.make()
        files.write(self._log, b"", within=self._run.path)
        log = files.append(self._log, within=self._run.path)
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",  # with -m the current directory comes first on sys.path: it is the user's
                env=environment(os.environ),
                start_new_session=True,  # Ctrl-C is for the program
            )
        finally:
            os.close(log)

    def _last_words(self) -> str:
        """Return the end of an error message: the fatal error in ``compiler.log``, or else the last output
        there. Empty if there is no output."""
        try:
            with files.open_regular(self._log, within=self._run.path) as f:
                f.seek(max(0, os.fstat(f.fileno()).st_size - LOG_TAIL))
                output = f.read(LOG_TAIL).decode("utf-8", "replace").strip()
        except OSError:
            return ""
        fatal = _FATAL.search(output)
        if fatal is not None:
            return f": {fatal[1].strip()}"
        return f"; its last output: {output}" if output else ""


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for the compiler's process: ``variables`` of the user's program with
    some changes. JAX is limited to the CPU, without settings for its number of devices. Variables that make a
    process record itself are removed. PYTHONPATH leads to this jaxscope. libtpu asks no metadata server, and
    if ``variables`` do not say otherwise, writes no log files, and only fatal errors to stderr."""
    env = {k: v for k, v in variables.items() if k not in _NOT_OURS}
    flags = [f for f in env.get("XLA_FLAGS", "").split() if "xla_force_host_platform_device_count" not in f]
    env["XLA_FLAGS"] = " ".join(flags)
    # Without TPU_SKIP_MDS_QUERY, libtpu waits for an answer of a cloud's metadata server.
    env.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    # Without TPU_LOG_DIR, libtpu leaves up to four files for each process in /tmp/tpu_logs.
    env = {"TPU_LOG_DIR": "disabled", "TPU_MIN_LOG_LEVEL": "3", "TPU_STDERR_LOG_LEVEL": "3"} | env
    from jaxscope.launch.command import BOOT

    home = str(Path(__file__).parents[2])
    paths = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and p != str(BOOT)]
    if home not in (*site.getsitepackages(), site.getusersitepackages(), *paths):
        paths.insert(0, home)  # run from a checkout that is not installed
    env["PYTHONPATH"] = os.pathsep.join(paths)
    return env


def _how(code: int) -> str:
    """Return how the compiler's process ended, from its exit ``code`` (negative: a signal): -6 gives ``the
    compiler's process died of SIGABRT``."""
    if code >= 0:
        return f"the compiler's process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    killed = " (killed, perhaps because memory ran out)" if -code == signal.SIGKILL else ""
    return f"the compiler's process died of {name}{killed}"
