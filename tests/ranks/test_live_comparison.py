"""Jobs of two real JAX processes that are compared while they run: named, stopped, and left as they are."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxscope.cli import command
from jaxscope.launch import ranks

pytestmark = [pytest.mark.capture, pytest.mark.subprocess, pytest.mark.costly, pytest.mark.long]
PROGRAM = Path(__file__).parents[1] / "programs" / "ranks_that_differ.py"


def started(run, env, *words, options=()):
    """Start a job of two ranks that records to ``run``."""
    argv = [sys.executable, "-m", "jaxscope", "launch", "-q", "-n", "2", "-o", str(run), *options]
    return subprocess.Popen(
        [*argv, str(PROGRAM), *words],
        cwd=run.parent,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end(process):
    """End a job that goes on: the first signal is passed on to its ranks, the second one kills them."""
    for _ in range(2):
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)


@pytest.fixture
def launched(tmp_path, clean_env):
    """Run a job to its end. Return its exit code, the lines that the ranks printed, and those of jaxscope."""

    def run(*words, options=()):
        process = started(tmp_path / "run", clean_env, *words, options=options)
        try:
            out, err = process.communicate(timeout=100)
        finally:
            end(process)
        return (
            process.returncode,
            out.splitlines(),
            [line for line in err.splitlines() if "jaxscope: " in line],
        )

    return run


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line)


def test_a_job_is_ended_with_4_before_the_program_that_differs_runs(launched, tmp_path, capsys):
    code, out, lines = launched("const", options=["--stop-on-divergence"])
    assert code == 4 and not any("value" in line for line in out)
    named = next(line for line in lines if "JX85" in line)
    assert named.startswith("[0] jaxscope: JX850 rank 1 and ")
    assert " compiled different programs for step at" in named
    assert f"ranks_that_differ.py:{line_of('x * scale')}: constant dense<2.0> f32 on rank 1" in named
    command(["report", "--format", "json", str(tmp_path / "run")])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["code"] == "JX850" and finding["title"] in named


def test_a_program_of_one_rank_alone_is_held_until_the_other_has_waited_and_never_runs(launched):
    code, out, lines = launched("extra", options=["--stop-on-divergence", "--ranks-patience", "3"])
    assert code == 4
    assert sum("value" in line for line in out) == 4, "two steps of each rank"
    assert any("JX851 rank 1 compiled extra at ranks_that_differ.py" in line for line in lines), lines


def test_the_rank_that_the_others_wait_for_is_named_with_the_line_of_its_main_thread(launched):
    code, out, lines = launched("waits", "9", options=["--ranks-patience", "3"])
    assert code == 0 and sum("value" in line for line in out) == 8
    late = f"rank 1 waiting at ranks_that_differ.py:{line_of('time.sleep(seconds)')} (for "
    told = [line for line in lines if late in line]  # several on a slow machine: ranks wait elsewhere, too
    form = r"\[0\] jaxscope: no progress for \d+\.\d s: rank \d waiting at"
    assert told and all(re.match(form, line) for line in told)
    other = f"rank 0 waiting at ranks_that_differ.py:{line_of('value = function(x)')} (for "
    assert any(other in line for line in told)


def test_a_rank_that_is_killed_is_named_though_the_other_is_killed_at_its_exit(launched, tmp_path, capsys):
    code, _, lines = launched("kill")
    assert code == 128 + 9
    assert any("rank 1 ended with signal 9" in line for line in lines)
    command(["report", "--format", "json", str(tmp_path / "run")])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["code"] == "JX853" and finding["title"].startswith("rank 1 ended first, by signal 9")


def test_a_job_whose_directory_vanishes_goes_on_as_it_would(tmp_path, clean_env):
    run = tmp_path / "run"
    process = started(run, clean_env, "waits", "4")
    try:
        lines = [process.stdout.readline()]
        while "value" not in lines[-1] and lines[-1]:
            lines.append(process.stdout.readline())
        for _ in range(2):
            shutil.rmtree(run, ignore_errors=True)
            time.sleep(0.1)
        lines += process.stdout.readlines()  # not by communicate, which loses what readline has read ahead
        err = process.stderr.read()
        process.wait(100)
    finally:
        end(process)
    assert process.returncode == 0 and sum("value 16.0" in line for line in lines) == 8
    assert "Traceback" not in err


def test_ranks_whose_coordinator_is_killed_end_as_they_do_without_a_recording(tmp_path, clean_env):
    """The ranks share no directory: each has a thread that calls the client of the coordinator's service."""
    ends = {}
    for recorded in (False, True):
        port, processes = ranks.free_port(), []
        for n in range(2):
            argv = [sys.executable, "-m", "jaxscope", "run", "-q", "--no-tui", "-o", str(tmp_path / str(n))]
            processes.append(
                subprocess.Popen(
                    [*(argv if recorded else argv[:1]), str(PROGRAM), "kill", "1", "0"],
                    cwd=tmp_path, env=ranks.environment(clean_env, n, 2, port, "j"), text=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )
            )  # fmt: skip
        try:
            errors = [p.communicate(timeout=100)[1] for p in processes]
        finally:
            for p in processes:
                end(p)
        assert not any("/jaxscope/capture/" in each for each in errors), errors
        ends[recorded] = [p.returncode for p in processes]
    assert ends[True][0] == ends[False][0] == -signal.SIGKILL
    assert ends[True][1] and ends[False][1], "JAX aborts it, or gloo's error ends it, whichever comes first"
