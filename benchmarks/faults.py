"""Read damaged run directories with every verb: all shapes of tests/support/damaged_runs.py, then random damage.

    python benchmarks/faults.py [--mutations 2000] [--seed 1] [--views 25] [--processes 1] [--minutes N]
                                [--only SHAPE] [-o FILE]

Nothing may raise, take more than 30 s of the processor or more than 1 GiB, leave exit code 1 without a
finding, show a file of the reader's or change one. Four verbs look at each mutated run, the view at each
25th. What fails is printed with what was done to the run; a mutation is made again by ``--seed`` and
``--first N --mutations 1``. After ``--minutes`` it ends early, with what it has. No JAX is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
import damaged_runs  # noqa: E402

SOME = 4  # of the verbs, for a mutated run
UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--mutations", type=int, default=2000)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--views", type=int, default=25, help="the view looks at each Nth mutated run; 0: never"
    )
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--minutes", type=float, default=float("inf"), help="end early after so many")
    options.add_argument("--only", help="shapes whose name contains this, and no mutations")
    options.add_argument("-o", type=Path, default=Path(__file__).with_suffix(".json"))
    given = options.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        os.chdir(work)
        os.environ.pop("CI", None)
        damaged_runs.base(work / "base" / "run")
        shapes = [name for name in damaged_runs.SHAPES if given.only is None or given.only in name]
        numbers = range(given.first, given.first + given.mutations) if given.only is None else range(0)
        jobs: list[tuple[Any, Any]] = [(_mutation, (given.seed, n, given.views)) for n in numbers]
        jobs = [(_shape, name) for name in shapes] + jobs
        made = _all(work, jobs, given.processes, began + 60 * given.minutes)
    wrong = [f"{m['name']}: {verb}: {why}" for m in made for verb, _, why in m["looks"] if why]
    wrong += [f"{m['name']}: {m['bytes'] >> 20:,} MiB" for m in made if m["bytes"] > damaged_runs.MEMORY]
    wrong += [f"{m['name']}: a file of the reader's was changed" for m in made if m["harmed"]]
    for line in wrong:
        print(line)
    seconds = sorted((s, verb, m["name"]) for m in made for verb, s, _ in m["looks"])
    record = {
        "python": platform.python_version(), "seed": given.seed, "shapes": len(shapes),
        "mutations": max(len(made) - len(shapes), 0), "ended_early": len(made) < len(jobs),
        "looks": Counter(verb for m in made for verb, _, _ in m["looks"]), "wrong": len(wrong),
        "seconds": round(time.monotonic() - began), "largest_mib": max(m["bytes"] for m in made) >> 20,
        "slowest": [[round(s, 1), verb, name] for s, verb, name in reversed(seconds[-5:])],
    }  # fmt: skip
    print(json.dumps(record, indent=1))
    if given.only is None:
        given.o.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if wrong else 0


def _all(work: Path, jobs: list[tuple[Any, Any]], processes: int, until: float) -> list[dict[str, Any]]:
    """Run ``jobs`` in child processes until ``until`` and return the results."""
    began, children = time.monotonic(), []
    for k in range(processes):
        if pid := os.fork():
            children.append(pid)
            continue
        try:
            place = work / str(k)
            place.mkdir()
            shutil.copytree(work / "base", place / "base")
            with (place / "made").open("w") as f:
                for n, (make, what) in enumerate(jobs[k::processes], 1):
                    f.write(json.dumps(_apart(place, make, what)) + "\n")
                    if time.monotonic() > until:
                        break
                    if n % 50 == 0:
                        print(f"{k}: {n:,} runs, {time.monotonic() - began:,.0f} s", flush=True)
        finally:
            os._exit(0)
    for pid in children:
        os.waitpid(pid, 0)
    made = [
        json.loads(x) for k in range(processes) for x in (work / str(k) / "made").read_text().splitlines()
    ]
    if len(made) != len(jobs) and time.monotonic() < until:
        raise SystemExit(f"{len(jobs) - len(made)} of {len(jobs)} runs were not looked at")
    return made


def _apart(work: Path, make: Any, what: Any) -> dict[str, Any]:
    """Make a run and read it in a child of this process, whose memory is its own."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        result: dict[str, Any] = {"name": str(what), "looks": [], "harmed": False, "bytes": 0}
        try:
            shutil.rmtree(work / "now", ignore_errors=True)
            reader = damaged_runs.theirs(_new(work / "now") / "theirs")
            run = work / "now" / "runs" / "run"
            shutil.copytree(work / "base" / "run", run)
            # What making it takes is not counted: that of a process counts from when it began.
            made = os.fork()
            if not made:
                try:
                    make(run, reader, what, None)
                finally:
                    os._exit(0)  # what cannot be made worse stays as it is
            os.waitpid(made, 0)
            name, verbs = make(run, reader, what, "verbs")
            result |= {"name": name, "looks": list(damaged_runs.look(run, verbs))}
            result["harmed"] = not damaged_runs.unharmed(reader)
        except BaseException as e:
            result["looks"].append(("harness", 0.0, f"{type(e).__name__}: {e}"))
        result["bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
        with os.fdopen(theirs, "wb") as f:
            f.write(json.dumps(result).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as f:
        data = f.read()
    _, status = os.waitpid(pid, 0)
    if not data:
        return {"name": str(what), "looks": [("child", 0.0, f"died: {status}")], "harmed": False, "bytes": 0}
    return json.loads(data)


def _new(path: Path) -> Path:
    path.mkdir()
    return path


def _shape(run: Path, reader: Path, name: str, wanted: str | None) -> Any:
    if wanted is None:
        return damaged_runs.SHAPES[name](run, reader)
    return name, [*damaged_runs.VERBS, *(["view"] if name in damaged_runs.VIEWED else [])]


def _mutation(run: Path, _: Path, what: tuple[int, int, int], wanted: str | None) -> Any:
    seed, n, views = what
    chance = random.Random(f"{seed} {n}")
    if wanted is None:
        return damaged_runs.mutate(run, chance)
    verbs = random.Random(f"{seed} {n} verbs").sample([*damaged_runs.VERBS, "all"], SOME)
    return f"{seed} {n}", [*verbs, *(["view"] if views and n % views == 0 else [])]


if __name__ == "__main__":
    sys.exit(main())
