"""Write run directories under faults: 64 writers at once, kill -9 at any moment, full disks.

    python benchmarks/faults_disk.py [--writers 64] [--kills 200] [--limits 400] [--programs 6] -o FILE

Of what was written before a fault nothing may be lost or torn, a run that is dead must be known to be dead at
once, and one whose recording stopped must never look complete. ``--programs`` runs a program of JAX's that
often, each time with less room, and has it checked; the rest needs no JAX.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxscope.log import reader, store
from jaxscope.log.writer import Writer
from jaxscope.model.load import going_on, load, state
from jaxscope.schema import events as ev

EVENTS = 500
PROGRAM = """
import jax, numpy as np, jaxscope
f = jax.jit(lambda x, k: x * k, static_argnums=1)
for i in range(6):
    for k in range(20): f(np.ones(3, "f4"), 20 * i + k)
    jaxscope.step()
print("done")
"""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--writers", type=int, default=64)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--limits", type=int, default=400)
    options.add_argument("--programs", type=int, default=6)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("-o", type=Path, required=True)
    given = options.parse_args()
    wrong: list[str] = []
    figures: dict[str, Any] = {"seed": given.seed}
    with tempfile.TemporaryDirectory() as folder:
        for name, look in (
            ("writers", writers),
            ("kills", kills),
            ("limits", limits),
            ("programs", programs),
        ):
            if not getattr(given, name):
                continue
            began = time.monotonic()
            found, bad = look(Path(folder) / name, getattr(given, name), random.Random(given.seed))
            figures[name] = {**found, "seconds": round(time.monotonic() - began, 1)}
            wrong += [f"{name}: {each}" for each in bad]
            print(name, figures[name], flush=True)
    figures |= {"jax": importlib.metadata.version("jax"), "python": platform.python_version()}
    given.o.write_text(json.dumps({**figures, "wrong": wrong}, indent=1) + "\n")
    print("\n".join(wrong) or "nothing wrong")
    return bool(wrong)


def writers(path: Path, number: int, _: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Processes that write events, counts and the same texts into one run at once."""
    run = store.create(path)

    def write(k: int) -> None:
        writer = _writer(run)
        page = writer.cell()
        for i in range(EVENTS):
            writer.emit(ev.Missed(call=i, function=f"f{k % 8}"))
            if i % 10 == 0:
                stored = writer.put_text(f"text {i}" * 1000)
                writer.emit(
                    ev.ProgramText(program=f"p{i}", stage="hlo", blob=stored[0] if stored else "", bytes=1)
                )
            if page is not None:
                page[1][page[2]] = i
        writer.emit(ev.RunEnded())
        writer.close()

    for pid in [_fork(lambda k=k: write(k)) for k in range(number)]:
        os.waitpid(pid, 0)
    events, read = len(list(reader.read(run))), load(run)
    wanted = number * (EVENTS + EVENTS // 10 + 2)
    blobs = list((path / "blobs").iterdir())
    bad = [f"{events:,} events of {wanted:,}"] if events != wanted else []
    bad += [f"{read.damaged} damaged lines"] if read.damaged else []
    bad += ["not complete"] if not read.complete or len(read.processes) != number else []
    bad += (
        [f"{len(blobs)} texts"]
        if len(blobs) != EVENTS // 10 or not all(run.data(b.stem) for b in blobs)
        else []
    )
    return {"processes": number, "events": events, "texts": len(blobs)}, bad


def kills(path: Path, number: int, chance: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Kill a process that writes with kill -9, at any moment."""
    bad, events, torn = [], 0, 0
    for n in range(number):
        run = store.create(path / str(n), how="record")

        def write(run: store.RunDir = run) -> None:
            writer = _writer(run)
            for i in range(10**9):
                writer.emit(ev.Missed(call=i, function="f" * (i % 300)))
                writer.put_text(f"text {i}")

        pid = _fork(write)
        time.sleep(chance.uniform(0.0, 0.05))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for log in run.logs():
            *lines, rest = log.read_bytes().split(b"\n")
            torn += bool(rest)
            events += len(lines)
            if [json.loads(line).get("seq", 0) for line in lines] != list(range(len(lines))):
                bad.append(f"{n}: events are missing")
        read = load(run)
        # Killed before its first event it has not said yet which lock is its own: for a minute nobody knows.
        if read.processes and (state(read, run), going_on(read, run), read.complete) != (
            "lost",
            False,
            False,
        ):
            bad.append(f"{n}: {state(read, run)}, {going_on(read, run)}")
        if run.remove():
            bad.append(f"{n}: something is left")
    return {"kills": number, "events": events, "torn_last_lines": torn}, bad


def limits(path: Path, number: int, chance: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Files that may not grow beyond a size: as a full disk, to the byte."""
    bad, stopped, unknown = [], 0, 0
    for n in range(number):
        run = store.create(path / str(n))
        limit = chance.randrange(0, 6000)

        def write(run: store.RunDir = run, limit: int = limit) -> None:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            writer = _writer(run)
            for i in range(60):
                writer.emit(ev.Missed(call=i, function="f" * (i % 30)))
                writer.put_text(f"text {i} {limit}" * (i % 7))
            writer.emit(ev.RunEnded())
            writer.close()

        os.waitpid(_fork(write), 0)
        read = load(run)
        if read.damaged or any(
            not log.read_bytes().endswith(b"\n") for log in run.logs() if log.stat().st_size
        ):
            bad.append(f"{limit} bytes: a torn line")
        if read.complete:
            bad.append(f"{limit} bytes: complete")
        stopped += bool(read.stopped)
        unknown += not read.stopped
    return {"limits": number, "said_in_the_log": stopped, "log_without_an_end": unknown}, bad


def programs(path: Path, number: int, _: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Run a JAX program under ``jaxscope run`` on a small disk, else under RLIMIT_FSIZE."""
    path.mkdir()
    (path / "program.py").write_text(PROGRAM)
    cli = [sys.executable, "-m", "jaxscope"]
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    bad, kinds = [], []
    for n in range(number):
        disk = path / str(n)
        disk.mkdir()
        kilobytes = 24 << n
        mounted = not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(disk)], capture_output=True, check=False
        ).returncode if os.getuid() == 0 and shutil.which("mount") else False  # fmt: skip
        try:
            words = [*cli, "run", "--no-tui", "-q", "-o", str(disk / "run"), str(path / "program.py")]
            limited = None if mounted else _limited(kilobytes << 10)
            ran = subprocess.run(
                words, env=env, capture_output=True, text=True, preexec_fn=limited, check=False
            )
            words = [*cli, "check", str(disk / "run"), "--no-recompiles-after", "6"]
            held = subprocess.run(words, env=env, capture_output=True, text=True, cwd=path, check=False)
            stopped = "recording stopped" in ran.stderr
            kinds.append(
                {"kilobytes": kilobytes, "mounted": mounted, "stopped": stopped, "check": held.returncode}
            )
            if ran.returncode not in (0, 2) or (not ran.returncode and ran.stdout != "done\n"):
                bad.append(f"{kilobytes} kB: the program: {ran.returncode} {ran.stderr[-200:]}")
            if (held.returncode == 0) == (stopped or ran.returncode != 0):
                said = held.stdout[-300:] + held.stderr[-300:] + ran.stderr[-300:]
                bad.append(f"{kilobytes} kB: stopped {stopped}, check {held.returncode} {said}")
            if "Traceback" in ran.stderr + held.stderr:
                bad.append(f"{kilobytes} kB: a traceback")
        finally:
            if mounted:
                subprocess.run(["umount", "-l", str(disk)], check=False)
    return {"programs": number, "each": kinds}, bad


def _limited(bytes: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    return limit


def _writer(run: store.RunDir) -> Writer:
    writer = Writer(run, lambda forked: ev.RunStarted(how="record"), of_program=True)
    writer.open()
    return writer


def _fork(body: Callable[[], None]) -> int:
    pid = os.fork()
    if not pid:
        try:
            body()
        finally:
            os._exit(0)
    return pid


if __name__ == "__main__":
    sys.exit(main())
