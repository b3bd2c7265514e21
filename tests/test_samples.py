"""The samples show what they say they show."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from folders import TESTS

from jaxscope.log.store import RunDir
from jaxscope.model import transfers
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules.registry import findings

pytestmark = [pytest.mark.capture, pytest.mark.costly]
SAMPLE = TESTS.parent / "samples" / "float_per_step.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory, clean_env):
    """The sample as it is, and its fixed version: (run, its report, the line of ``float(loss)``)."""
    made = {}
    for name, options in (("slow", []), ("fixed", ["--fixed"])):
        folder = tmp_path_factory.mktemp(name)
        where = folder / "run"
        for line in (["run", "-q", "-o", where, SAMPLE, *options], ["report", where]):
            done = subprocess.run(
                [sys.executable, "-m", "jaxscope", *map(str, line)],
                cwd=folder, env={**clean_env, "COLUMNS": "200"}, capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        made[name] = load(RunDir(where)), done.stdout
    return made


def line_of_float() -> int:
    return next(
        n for n, text in enumerate(SAMPLE.read_text().splitlines(), 1) if "append(float(loss))" in text
    )


def test_a_loss_read_in_every_step_is_found_with_its_line_its_count_and_its_seconds(runs):
    run, report = runs["slow"]
    [finding] = [f for f in findings(run) if f.code == "JX601"]
    [t] = [t for t in transfers.transfers(run) if t.kind == "float"]
    assert (t.count, t.steps, t.source.line, t.text) == (200, 200, line_of_float(), "float(loss)")
    assert finding.source.line == line_of_float()
    assert 0 < finding.seconds <= t.blocked_seconds, "of the waits, what the change can save"
    told = "float(loss) waits for the device in each of 200 steps; this took "
    assert words.title(finding).startswith(told) and told in report


def test_compilations_outside_the_step_have_the_same_figures_in_each_part_of_the_report(runs):
    run, report = runs["slow"]
    report = " ".join(report.split())
    head = re.search(
        r"([\d.]+ m?s) spent recompiling outside your jitted functions \((\d+) of (\d+) compilations there\)",
        report,
    )
    section = re.search(r"Outside your jitted functions (\d+) compilations of .*? \((\d+)x, ", report)
    assert section[1] == head[3]
    # JX133 is reported if the random draws took less than half of the time.
    figures = r"line \d+ caused (\d+) compilations outside jit \(.*?\); (\d+) of them are recompiles, which took ([\d.]+ m?s)"
    for title in [words.title(f) for f in findings(run) if f.code == "JX133"]:
        assert re.search(figures, title).groups() == (section[2], head[2], head[1])


def test_it_vanishes_with_the_fixed_version(runs):
    run, report = runs["fixed"]
    assert not [words.title(f) for f in findings(run) if f.code.startswith("JX6")] and "JX601" not in report
    [t] = [t for t in transfers.transfers(run) if t.kind == "float"]
    assert (t.count, t.steps) == (4, 4)
