"""The sample of eight processes: nothing is found in it, and in its twin the process that lost examples is named."""

import json
import os
import subprocess
import sys

import pytest
from folders import TESTS

from jaxscope.cli import command

pytestmark = [pytest.mark.capture, pytest.mark.subprocess, pytest.mark.costly, pytest.mark.long]
SAMPLE = TESTS.parent / "samples" / "train_many_processes.py"


def line_of(text):
    return next(n for n, line in enumerate(SAMPLE.read_text().splitlines(), 1) if text in line)


@pytest.fixture
def trained(tmp_path, clean_env, capsys):
    """Train with eight processes. Return what they printed, the lines of jaxscope, and the report as JSON."""

    def run(*options):
        argv = [sys.executable, "-m", "jaxscope", "launch", "-n", "8", "-o", str(tmp_path / "run")]
        done = subprocess.run(
            [*argv, str(SAMPLE), "--steps", "2", *options],
            cwd=tmp_path, env=clean_env, text=True, capture_output=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        command(["report", "--format", "json", str(tmp_path / "run")])
        printed = [line for line in done.stdout.splitlines() if "Gloo" not in line]
        lines = [line for line in done.stderr.splitlines() if line.startswith("[0] jaxscope: ")]
        return printed, lines, json.loads(capsys.readouterr().out)

    return run


@pytest.mark.skipif(not os.environ.get("JAXSCOPE_TEST_SLOW"), reason="half a minute: JAXSCOPE_TEST_SLOW=1")
def test_eight_processes_of_one_training_are_one_group(trained):
    out, lines, report = trained()
    assert out == ["[0] step 0: loss 0.6579"] and not [n for n in lines if "JX85" in n]
    assert report["ranks"]["groups"] == [list(range(8))] and report["ranks"]["missing"] == []
    assert not [f for f in report["findings"] if f["code"].startswith("JX85")]


def test_the_process_that_lost_examples_is_named_with_its_program_and_line_live_and_in_the_report(trained):
    out, lines, report = trained("--lost")
    assert out == ["[0] step 0: loss 0.6579"], "the same wrong loss, without an error"
    (line,) = (n for n in lines if "JX850" in n)
    assert line.startswith(
        "[0] jaxscope: JX850 rank 5 and the others compiled different programs for main.train_step at "
    )
    constant = line_of("return -right.sum()")
    assert f"first difference: train_many_processes.py:{constant}: constant " in line
    (finding,) = (f for f in report["findings"] if f["code"] == "JX850")
    assert finding["title"] in line
    assert finding["source"]["file"] == str(SAMPLE) and finding["source"]["line"] == constant
    assert report["ranks"]["groups"] == [[0, 1, 2, 3, 4, 6, 7], [5]]
