"""How soon a rank that does something else is named: python benchmarks/ranks_live.py [-n RANKS] [--apart] [ROW ...]

Each row is a job of real JAX processes on the CPU in which the last rank differs. Printed are the seconds from that moment
to the line of ``--compare-ranks``, what ``jaxscope report`` finds on the directory afterwards, and the exit code. With
``--apart`` each rank records to a directory of its own, so that JAX's coordination service is used, and the report is of
the directories merged. ``--same K`` runs K
jobs without a difference, without jaxscope, recorded twice and compared, counts those whose output or exit code is not the
same, and prints what each costs.
``--traps`` kills the coordinator, and a rank that is not, in jobs without jaxscope, with it, and with a directory for each
rank; it prints how all ranks ended, and when.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from jaxscope.launch import ranks

PROGRAM = Path(__file__).parents[1] / "tests" / "programs" / "ranks_that_differ.py"
# By row: the words of the program, options of jaxscope, the codes that name it, of the line and of the report.
ROWS: dict[str, tuple[list[str], list[str], str]] = {
    "const": (["const"], [], "JX850"),
    "shape": (["shape"], [], "JX85[01]"),
    "program": (["program"], [], "JX85[01]"),
    "order": (["order"], ["--step-function", "step"], "JX852"),
    "extra": (["extra", "40"], [], "JX851"),
    "fewer": (["fewer", "40"], [], "JX853"),
    "exit": (["exit", "40"], [], "JX853"),
    "kill": (["kill"], [], "JX853"),
    "waits": (["waits", "40"], [], "no progress"),
}
LIMIT_S = 100.0


class Job:
    """A running job: its lines with the time at which each came."""

    def __init__(
        self,
        folder: Path,
        words: list[str],
        options: list[str],
        size: int,
        *,
        apart: bool,
        launched: bool = True,
        recorded: bool = True,
    ) -> None:
        self.lines: list[tuple[float, str]] = []
        self.processes: list[subprocess.Popen[str]] = []
        self.threads: list[threading.Thread] = []
        self.folder = folder
        run = [sys.executable, "-m", "jaxscope"]
        if apart or not launched:
            port = ranks.free_port()
            for n in range(size):
                where = folder / f"host{n}" / "run" if apart else folder / "run"
                argv = [*run, "run", "-q", "--no-tui", "-o", str(where), *options]
                argv = argv if recorded else [sys.executable]
                self._start([*argv, str(PROGRAM), *words], ranks.environment(os.environ, n, size, port, "j"))
        else:
            argv = [*run, "launch", "-q", "-n", str(size), "-o", str(folder / "run"), *options]
            self._start([*argv, str(PROGRAM), *words], {**os.environ})

    def _start(self, argv: list[str], env: dict[str, str]) -> None:
        process = subprocess.Popen(
            argv, env=env, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.processes.append(process)
        self.threads.append(threading.Thread(target=self._read, args=(process,), daemon=True))
        self.threads[-1].start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append((time.time(), line.rstrip()))

    def first(self, pattern: str) -> tuple[float, str] | None:
        return next(((t, line) for t, line in list(self.lines) if re.search(pattern, line)), None)

    def wait(self, pattern: str | None, limit: float) -> None:
        """Return when a line matches, and the job has ended or some seconds later; after ``limit`` in any case."""
        end = time.time() + limit
        while time.time() < end and any(p.poll() is None for p in self.processes):
            if pattern is not None and self.first(pattern) is not None:
                end, pattern = min(end, time.time() + 3), None
            time.sleep(0.1)

    def stop(self) -> list[int | None]:
        """End the job: its ranks wait for each other. Return the exit codes; None: it did not end by itself."""
        codes = [p.poll() for p in self.processes]
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            for p in self.processes:
                if p.poll() is None:
                    p.send_signal(number)
            self.wait(None, 12)
        for p in self.processes:
            p.wait()
        return codes


def row(name: str, size: int, *, apart: bool) -> None:
    """Run one job and print its line of the table."""
    words, options, codes = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder), words, options, size, apart=apart)
        pattern = rf"jaxscope: .*{codes}"
        job.wait(pattern, LIMIT_S)
        ended = job.stop()
        named, began = job.first(pattern), job.first("differs at")
        after = f"{named[0] - began[0]:.1f} s" if named and began else "never"
        where = Path(folder) / "run"
        if apart:
            _jaxscope(
                "runs", "merge", "-o", str(where), *(str(Path(folder) / f"host{n}") for n in range(size))
            )
        found = json.loads(_jaxscope("report", "--format", "json", str(where)) or "{}").get("findings", [])
        titles = [f"{f['code']} {f['title']}" for f in found if f["code"].startswith("JX85")]
        print(f"{name:8} {size:3} ranks  named after {after:7}  exit {ended}")
        print(f"         {named[1].partition('jaxscope: ')[2] if named else ''}")
        print("".join(f"         report: {title}\n" for title in titles or ["-"]), end="", flush=True)


def _jaxscope(*words: str) -> str:
    """Run a command of jaxscope. Return what it prints."""
    argv = [sys.executable, "-m", "jaxscope", *words]
    return subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout


ARMS: dict[str, list[str] | None] = {
    "without jaxscope": None,
    "recorded": ["--no-compare-ranks"],
    "recorded again": ["--no-compare-ranks"],
    "compared": ["--compare-ranks"],
}


def same(jobs: int, size: int) -> None:
    """Run jobs without a difference: without jaxscope, recorded, recorded once more, and compared.

    Print how many had another output or exit code than without jaxscope, and by how many seconds, of the clock and of
    CPU, they took longer than the recorded one of the same round. The arms of a round run in random order.
    """
    wrong = dict.fromkeys(ARMS, 0)
    taken: dict[str, list[tuple[float, float]]] = {arm: [] for arm in ARMS}
    for _ in range(jobs):
        seen = {}
        for arm in random.sample(list(ARMS), len(ARMS)):
            with tempfile.TemporaryDirectory() as folder:
                began, cpu = time.monotonic(), _cpu_seconds()
                options = ARMS[arm] or []
                job = Job(
                    Path(folder),
                    ["all"],
                    options,
                    size,
                    apart=False,
                    launched=False,
                    recorded=ARMS[arm] is not None,
                )
                codes = [p.wait() for p in job.processes]
                taken[arm].append((time.monotonic() - began, _cpu_seconds() - cpu))
                for reading in job.threads:
                    reading.join()
                seen[arm] = codes, sorted(line for _, line in job.lines if "Gloo" not in line)
        for arm in ARMS:
            wrong[arm] += seen[arm] != seen["without jaxscope"] or any(seen[arm][0])
    print(f"{jobs} jobs of {size} ranks, and more than recorded ones: median (quartiles) in seconds")
    for arm in ARMS:
        clock, cpu = (
            _spread([each[n] - base[n] for each, base in zip(taken[arm], taken["recorded"], strict=True)])
            for n in (0, 1)
        )
        whole = statistics.median(t for t, _ in taken[arm]), statistics.median(t for _, t in taken[arm])
        print(
            f"{arm:16}  {wrong[arm]} with another output or exit code"
            f"  clock {whole[0]:.2f} s, {clock}  CPU {whole[1]:.2f} s, {cpu}"
        )


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spread(values: list[float]) -> str:
    low, middle, high = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return f"{middle:+.2f} ({low:+.2f} to {high:+.2f})"


def traps(size: int) -> None:
    """Print how the ranks end where one is killed."""
    for odd in (0, size - 1):
        for name, how in (
            ("without jaxscope", {"apart": False, "recorded": False}),
            ("one directory", {"apart": False}),
            ("a directory each", {"apart": True}),
        ):
            with tempfile.TemporaryDirectory() as folder:
                job = Job(Path(folder), ["kill", "1", str(odd)], [], size, launched=False, **how)
                job.wait(None, 200.0)
                began, last = job.first("differs at"), max((t for t, _ in job.lines), default=0.0)
                codes = [
                    job.processes[odd].poll(),
                    *(p.poll() for n, p in enumerate(job.processes) if n != odd),
                ]
                job.stop()
                after = f"{last - began[0]:.1f} s" if began else "?"
                print(
                    f"rank {odd} killed, {name:16}  it ends with {codes[0]}, the others {codes[1:]}  {after}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=4)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--same", type=int, default=0)
    parser.add_argument("--traps", action="store_true")
    parser.add_argument("rows", nargs="*")
    args = parser.parse_args()
    if args.same:
        same(args.same, args.n)
        return
    if args.traps:
        traps(args.n)
        return
    for name in args.rows or ROWS:
        row(name, args.n, apart=args.apart)


if __name__ == "__main__":
    main()
