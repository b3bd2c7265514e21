"""Small changes to a training step on eight devices: each makes the check against its baseline fail with the finding
that names it. A handful, in one process; benchmarks/mutations.py tries all, each in a process of its own."""

import json
import os
import subprocess
import sys

import pytest
from folders import PROGRAMS

sys.path.insert(0, str(PROGRAMS))

from changes_of_step import CHANGES, DEVICES, PROGRAM, names_it

from jaxscope import cli

pytestmark = [pytest.mark.capture, pytest.mark.costly, pytest.mark.long]

TRIED = (
    "a dropped donation",
    "a lost constraint",
    "a weak type",
    "a shorter last batch",
    "one more psum",
    "a captured array",
    "a float per step",
    "a debug print",
    "a higher precision",
    "a loop written out",
)


@pytest.fixture(scope="module")
def folders(made_once, clean_env):
    """name -> directory of a recorded run; ``before`` and ``again`` are the program as it is."""
    sources = {"before": PROGRAM.read_text(), "again": PROGRAM.read_text()}
    sources.update((c.name, c.source()) for c in CHANGES if c.name in TRIED)

    def make(folder):
        found = {}
        for name, source in sources.items():
            found[name] = folder / name.replace(" ", "-")
            found[name].mkdir()
            (found[name] / "step.py").write_text(source)
        done = subprocess.run(
            [sys.executable, str(PROGRAMS / "each_recorded.py"), *map(str, found.values())],
            env={**clean_env, **DEVICES},
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        return found

    return made_once("mutations", make)


@pytest.fixture
def check(folders, capsys, monkeypatch):
    """``check(name)``: the exit code and the findings of that run, against the baseline of ``before``."""
    monkeypatch.delenv("CI", raising=False)
    baseline = folders["before"] / "baseline.json"

    def call(name, *options):
        monkeypatch.chdir(folders[name])
        words = ["check", "recorded", "--baseline", str(baseline), "--output-format", "json", *options]
        code = cli.command(words)
        return code, json.loads(capsys.readouterr().out)["findings"]

    if not baseline.exists():
        assert call("before", "--update-baseline") == (0, [])
    return call


def test_the_program_as_it_is_passes_again(check):
    assert check("again", "--strict") == (0, [])


@pytest.mark.parametrize("change", [c for c in CHANGES if c.name in TRIED], ids=lambda c: c.name)
def test_a_change_fails_with_the_finding_that_names_it(check, change):
    code, found = check(change.name)
    assert code == 1
    named = [f for f in found if f["severity"] != "note" and names_it(change, f)]
    assert named, [f"{f['code']} {f['title']}" for f in found]
    assert named[0]["source"]["file"].endswith(f"{os.sep}step.py")


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.name)
def test_every_change_can_be_made(change):
    assert change.source() != PROGRAM.read_text()
    compile(change.source(), "step.py", "exec")
