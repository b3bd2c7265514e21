"""Compare other people's tests with and without recording, outcome by outcome.

    python benchmarks/transparency.py --jax DIR --chex DIR --optax DIR --equinox DIR [-o FILE]

Each DIR is a checkout of the sources that fit what is installed (of JAX its ``tests``, ``conftest.py`` and
``pyproject.toml`` are enough). Each suite is run in a process of its own, by pytest alone and then under
``jaxscope run``; both write down each test's outcome as it ends, so that a crash is the outcome of the test
that ran, and what was left is run in a new process. They run on the CPU if JAX_PLATFORMS does not name
another platform. A suite whose outcomes differ is run again, both ways: a difference is ``steady`` where each
way gave the same outcome each time. ``--work`` keeps what is done: a run that was interrupted goes on from
there. ``--before "nice -n 19"`` is put before each process.
"""

from __future__ import annotations

import argparse
import collections
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

JAX_FILES = ("api_test", "pjit_test", "array_test", "shard_map_test", "python_callback_test")
WAYS = ("bare", "recorded")
WRITTEN = "TRANSPARENCY_WRITTEN"  # where the plugin writes, and finds what is done
ENDED = "<ended>"  # pytest came to its end

# --- the plugin: this file again, loaded by pytest (-p transparency) --------------------


def _lines(file: Path) -> list[dict[str, Any]]:
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def _write(**what: Any) -> None:
    with Path(os.environ[WRITTEN]).open("a") as out:
        out.write(json.dumps(what) + "\n")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what an earlier process has done."""
    done = {line["test"] for line in _lines(Path(os.environ[WRITTEN]))}
    config.hook.pytest_deselected(items=[i for i in items if i.nodeid in done])
    items[:] = [i for i in items if i.nodeid not in done]


def pytest_runtest_logstart(nodeid: str) -> None:
    _write(test=nodeid, outcome=None)


def pytest_runtest_logreport(report: Any) -> None:
    outcome = report.outcome
    if report.when != "call" and outcome == "failed":
        outcome = "error"
    if hasattr(report, "wasxfail"):
        outcome = "x" + outcome
    if report.when == "call" or outcome != "passed":
        _write(test=report.nodeid, outcome=outcome, why=str(report.longrepr)[-600:] if report.failed else "")


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write(test=report.nodeid, outcome="not collected", why=str(report.longrepr)[-600:])


def pytest_sessionfinish() -> None:
    _write(test=ENDED, outcome=None)


# --- running --------------------


def suites(asked: argparse.Namespace) -> Iterator[tuple[str, Path, list[str], list[str]]]:
    """Yield name, working directory, files and pytest's options of each suite whose sources were given."""
    if asked.jax:
        for name in JAX_FILES:
            yield f"jax {name}", asked.jax, [f"tests/{name}.py"], []
    for name, pattern in (("chex", "chex/**/*_test.py"), ("optax", "optax/**/*_test.py")):
        folder = getattr(asked, name)
        files = sorted(str(f.relative_to(folder)) for f in folder.glob(pattern)) if folder else []
        # This one of chex sets the number of devices, which the others have set already.
        alone = [f for f in files if f.endswith("fake_set_n_cpu_devices_test.py")]
        if files:
            yield name, folder, [f for f in files if f not in alone], []
        if alone:
            yield f"{name} devices", folder, alone, []
    if asked.equinox:
        files = sorted(str(f.relative_to(asked.equinox)) for f in asked.equinox.glob("tests/test_*.py"))
        # Its own option has beartype look at every annotation, which may not be installed.
        yield "equinox", asked.equinox, files, ["-o", "addopts="]


def run(way: str, folder: Path, files: list[str], options: list[str], at: Path, before: list[str]) -> None:
    """Run tests to their end, in as many processes as it takes."""
    at.mkdir(parents=True, exist_ok=True)
    written = at / "outcomes.jsonl"
    pytest = [
        "-m", "pytest", "-q", "-p", "transparency", "-p", "no:cacheprovider", "-p", "no:randomly",
        "--continue-on-collection-errors", *options, *files,
    ]  # fmt: skip
    found = filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    platforms = os.environ.get("JAX_PLATFORMS", "cpu")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(found), JAX_PLATFORMS=platforms)
    env[WRITTEN] = str(written)
    for attempt in range(50):
        if (lines := _lines(written)) and lines[-1]["test"] == ENDED:
            break
        if way == "bare":
            command = [sys.executable, *pytest, "-p", "no:jaxscope"]
        else:
            recorded = ["--no-tui", "-q", "-o", str(at / f"run{attempt}-{time.time_ns()}")]
            command = [sys.executable, "-m", "jaxscope", "run", *recorded, *pytest]
        with (at / "output.txt").open("a") as out:
            code = subprocess.run(
                [*before, *command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            ).returncode
        lines = _lines(written)
        if lines and lines[-1]["test"] == ENDED:
            break
        if not lines:
            raise SystemExit(f"{files}: pytest ended with {code} before the first test, see {at}/output.txt")
        with written.open("a") as out:
            out.write(json.dumps({"test": lines[-1]["test"], "outcome": f"crashed ({code})"}) + "\n")


def outcomes(at: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome of each test, and why it failed. A failure after a pass is a failure."""
    found: dict[str, tuple[str, str]] = {}
    for line in _lines(at / "outcomes.jsonl"):
        if line["outcome"] is not None and found.get(line["test"], ("passed",))[0] in ("passed", "skipped"):
            found[line["test"]] = line["outcome"], line.get("why", "")
    return found


def degraded(at: Path) -> dict[str, str]:
    """Return what jaxscope could not record, with its reason."""
    from jaxscope.log import reader, store
    from jaxscope.schema.events import Degraded

    found: dict[str, str] = {}
    for folder in at.glob("run*"):
        for event in reader.read(store.RunDir(folder)):
            if isinstance(event, Degraded):
                found.setdefault(event.seam, event.reason)
    return found


def compare(name: str, asked: argparse.Namespace, folder: Path, files: list[str], options: list[str]) -> Any:
    """Run a suite both ways, and say where the outcomes differ."""
    before = shlex.split(asked.before)
    differ: set[str] = set()
    missing: dict[str, str] = {}
    rounds: list[dict[str, dict[str, tuple[str, str]]]] = []
    for n in range(2):
        places = {way: asked.work / way / str(n) / name.replace(" ", "_") for way in WAYS}
        for way, at in places.items():
            run(way, folder, files, options, at, before)
        one = {way: outcomes(at) for way, at in places.items()}
        rounds.append(one)
        missing |= degraded(places["recorded"])
        tests = set(one["bare"]) | set(one["recorded"])
        unlike = {t for t in tests if one["bare"].get(t, ("",))[0] != one["recorded"].get(t, ("",))[0]}
        differ |= unlike
        print(f"{name}: {len(tests)} tests, {len(unlike)} differ", flush=True)
        if not unlike:
            break
    each = []
    for test in sorted(differ):
        got = {way: [r[way].get(test, ("absent", ""))[0] for r in rounds] for way in WAYS}
        why = {
            way: next((r[way][test][1] for r in rounds if test in r[way] and r[way][test][1]), "")
            for way in WAYS
        }
        steady = len(rounds) > 1 and all(len(set(got[way])) == 1 for way in WAYS)
        each.append({"test": test, **got, "steady": steady, "why": why["recorded"] or why["bare"]})
    counts = collections.Counter(outcome for outcome, _ in rounds[0]["bare"].values())
    return {
        "suite": name,
        "tests": sum(counts.values()),
        "bare": dict(counts),
        "differ": each,
        "not_recorded": missing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("jax", "chex", "optax", "equinox"):
        parser.add_argument(f"--{name}", type=lambda p: Path(p).resolve(), help="its sources")
    parser.add_argument("--only", action="append", help="this suite (repeatable): 'jax api_test', 'chex'")
    parser.add_argument("--work", type=lambda p: Path(p).resolve(), help="where what is done is kept")
    parser.add_argument("--before", default="", help="a command that each process is started with")
    parser.add_argument("-o", "--out", type=Path)
    asked = parser.parse_args()
    asked.work = asked.work or Path(tempfile.mkdtemp(prefix="transparency-"))
    found = [
        compare(name, asked, folder, files, options)
        for name, folder, files, options in suites(asked)
        if not asked.only or name in asked.only
    ]
    versions = {p: importlib.metadata.version(p) for p in ("jax", "chex", "optax", "equinox")}
    said = {
        "jaxscope": importlib.metadata.version("jaxscope"),
        **versions,
        "python": platform.python_version(),
        "tests": sum(s["tests"] for s in found),
        "differ": sum(len(s["differ"]) for s in found),
        "each": found,
    }
    text = json.dumps(said, indent=1)
    print(text if asked.out is None else f"{said['tests']} tests, {said['differ']} differ")
    if asked.out is not None:
        asked.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
