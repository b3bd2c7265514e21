"""A private name of JAX that is gone costs the fields it gives: they are unknown, which is said, and never wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from folders import PROGRAMS

pytestmark = [pytest.mark.capture, pytest.mark.subprocess]

RENAMES = PROGRAMS / "renamed_in_jax.py"
# What JAX itself calls a parameter whose name is not known.
POSITIONS = ("args[", "flat_args[")


def recordings(folder: Path, *args: str) -> list[dict]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "XLA_FLAGS"))}
    env |= {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    env["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, str(RENAMES), *args],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def checked(found: list[dict]) -> list[str]:
    """The names that were renamed, each of which cost nothing but what is said to be lost."""
    as_is = {r["renamed"]: r for r in found if r["renamed"] in r["output"]}
    renamed = [r for r in found if r["renamed"] not in as_is]
    assert not any(r["degraded"] for r in as_is.values())
    wrong = {r["renamed"]: problems for r in renamed if (problems := list(_problems(as_is, r)))}
    assert not wrong, json.dumps(wrong, indent=1)
    return [r["renamed"] for r in renamed]


def _problems(as_is: dict[str, dict], r: dict):
    name = r["renamed"].rpartition(" ")[2].rpartition(".")[2]
    if not r["output"]:
        yield "no program reads it"
    if not any(name in reason for _, reason in r["degraded"]):
        yield f"nothing says that {name} is missing"
    calls, counts = [], {}
    for program, output in r["output"].items():
        before = as_is[program]
        if output != before["output"][program]:
            yield f"{program}: its outcome was {before['output'][program]}, is {output}"
        calls += before["calls"]
        counts |= before["counts"]
    yield from (f"counted anew: {k}" for k in r["counts"].keys() - counts.keys())
    yield from _different(counts, {k: r["counts"].get(k) for k in counts}, "counts")
    yield from _calls(calls, r)


def _calls(calls: list[dict], r: dict):
    """Compare call by call; those that are not recorded, and their parts that are not, are no answer at all."""
    now = list(r["calls"])
    for call in calls:
        if not now or now[0]["site"] != call["site"]:
            continue
        same = now.pop(0)["events"]
        if call["events"][0][1]["entry"] == "aot":  # its phases are calls of their own; nothing may lead back
            while now and now[0]["site"] == call["site"]:
                same += [e for e in now.pop(0)["events"] if e[0] != "Missed"]
        events = dict(call["events"])
        for kind, data in same:
            if kind == "Retargeted" and str(data.get("skipped")).startswith("LookupError"):
                continue
            nested = events["Missed"]["entry"] in ("nested", "transform")
            if kind not in events and not (kind == "Traced" and "PhaseFailed" in events and nested):
                yield f"{call['site']}: {kind}"
            elif kind in events:
                yield from _different(events[kind], data, f"{call['site']} {kind}")
        missing = events.keys() - {kind for kind, _ in same} - {"Retargeted"}
        if missing - {"PhaseFailed"} or (missing and "Traced" not in {kind for kind, _ in same}):
            yield f"{call['site']}: no {', '.join(sorted(missing))}"
    yield from (f"{call['site']}: a call more" for call in now)


def _different(before: object, now: object, where: str):
    if now is None or now == before:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before:
            yield from _different(before[name], now.get(name), f"{where}.{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (a, b) in enumerate(zip(before, now, strict=True)):
            yield from _different(a, b, f"{where}[{i}]")
    elif not (isinstance(now, str) and now.startswith(POSITIONS)):
        yield f"{where}: was {before!r:.100}, is {now!r:.100}"


def test_every_private_name_that_is_gone_costs_a_field_and_gives_no_wrong_answer(tmp_path):
    from jaxscope.jax_internals import attributes, frames, objects

    names = checked(recordings(tmp_path))
    declared = sum(len(kind.names) for kind in (*frames.FRAMES, *objects.OBJECTS)) + len(
        attributes.ATTRIBUTES
    )
    assert len(names) == declared > 120


def test_locals_that_are_renamed_in_the_code_of_jax_itself_are_unknown(tmp_path):
    assert len(checked(recordings(tmp_path, "code"))) > 8


def test_every_declared_name_belongs_to_a_part_of_the_recording():
    from jaxscope.jax_internals import attributes, availability, frames, objects

    needed = {id(n) if not isinstance(n, tuple) else (n[0], f) for s in availability.PARTS for n in s.needs for f in (n[1] if isinstance(n, tuple) else [""])}  # fmt: skip
    kinds = {(k, f) for k in (*frames.FRAMES, *objects.OBJECTS) for f in k.names}
    assert kinds <= needed
    assert {id(a) for a in attributes.ATTRIBUTES.values()} <= needed
