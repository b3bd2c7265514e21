"""Run a program in several processes (ranks) within a test, for the fixture ``jaxscope_ranks``."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from jaxscope.log import store
from jaxscope.model import ranks
from jaxscope.present import findings as words
from jaxscope.rules import ranks as rules
from jaxscope.schema.findings import Finding

TIMEOUT_S = 120.0
END_S = 15.0  # seconds that a job has to end after a signal
SHOWN = 4_000  # so many characters of the output are in the message of a failure


class Ended(NamedTuple):
    """The result of running a program in several processes (ranks).

    Attributes:
      job: what the processes recorded; ``job.groups()`` returns groups of processes that compiled the same
        programs. None: nothing was recorded.
      findings: findings about differences between the processes.
      returncode: the exit code of the first process that failed (128 + N if signal N ended the process), or
        0; None: the program did not end in time.
      output: the output of all processes; each line begins with the number of the process.
    """

    job: ranks.Job | None
    findings: list[Finding]
    returncode: int | None
    output: str

    @property
    def failure(self) -> str | None:
        """Return what is wrong, as text; None if all processes ran the same programs and ended with exit code
        0."""
        if self.job is None:
            return f"no rank recorded anything; their output:\n{self.output[-SHOWN:]}"
        found = []
        for f in self.findings:
            line = "" if f.source is None else f" ({Path(f.source.file).name}:{f.source.line})"
            found.append(f"{f.code} {words.sentence(f)}{line}")
        if self.returncode != 0:
            ended = (
                "did not end in time"
                if self.returncode is None
                else f"ended with exit code {self.returncode}"
            )
            found.append(f"the job {ended}; its output:\n{self.output[-SHOWN:]}")
        return "\n".join(found) or None


def run(folder: Path, size: int, program: list[str], timeout: float = TIMEOUT_S) -> Ended:
    """Run ``program``, a script with its arguments, in ``size`` processes, and record them in ``folder/run``.
    Return the result with a comparison of what the processes compiled. The processes use the CPU, unless
    JAX_PLATFORMS is set. The program is ended after ``timeout`` seconds."""
    where = folder / "run"
    argv = [
        sys.executable,
        "-m",
        "jaxscope",
        "launch",
        "-q",
        "-n",
        str(size),
        "-o",
        str(where),
        "--",
        *program,
    ]
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    code: int | None
    try:
        output, _ = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        code = None
        output = _stopped(process)
    if not any(place.recorded for place in store.rank_runs(store.RunDir(where))):
        return Ended(None, [], code, output)
    job = ranks.read(store.RunDir(where))
    return Ended(job, rules.findings(job), code, output)


def _stopped(process: subprocess.Popen[str]) -> str:
    """End the program that ``process``, a ``jaxscope launch``, runs in several processes, and return its
    output."""
    for _ in range(2):  # jaxscope launch passes the first signal on, and kills the processes at the second
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=END_S)[0]
    process.kill()
    return process.communicate()[0]
