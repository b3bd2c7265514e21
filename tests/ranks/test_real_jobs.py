"""Jobs of real JAX processes on the CPU: recorded into one run, compared, and named where they differ."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaxscope.cli import command

pytestmark = [pytest.mark.capture, pytest.mark.subprocess, pytest.mark.costly]
PROGRAM = Path(__file__).parents[1] / "programs" / "ranks_that_differ.py"
LAUNCHERS = ("mpirun", "srun")


@pytest.fixture(scope="module")
def recorded(made_once, clean_env):
    """The run of four ranks of which one multiplies by 2.0, and what they printed."""

    def make(folder):
        words = [
            sys.executable,
            "-m",
            "jaxscope",
            "launch",
            "-n",
            "4",
            "-o",
            str(folder / "run"),
            str(PROGRAM),
            "const",
        ]
        done = subprocess.run(words, cwd=folder, env=clean_env, text=True, capture_output=True, timeout=200)
        return str(folder / "run"), done.returncode, done.stdout, done.stderr

    return made_once("four-ranks", make)


@pytest.fixture
def jaxscope(capsys):
    """Run a command in this process. Return its exit code and what it printed."""

    def run(*words):
        code = command([*words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line)


def test_a_rank_with_another_constant_is_named_with_its_line_though_all_end_with_0(recorded, jaxscope):
    run, code, out, err = recorded
    assert code == 0 and sorted(line[:3] for line in out.splitlines() if "value" in line) == [
        f"[{n}]" for n in range(4)
    ]
    assert "JX850" in err, "the summary of launch"
    found = json.loads(jaxscope("report", "--format", "json", run)[1])
    (finding,) = (f for f in found["findings"] if f["code"] == "JX850")
    assert finding["source"]["line"] == line_of("x * scale")
    assert "constant dense<2.0> f32 on rank 3, constant dense<1.0> f32 on the others" in finding["title"]
    assert found["ranks"]["groups"] == [[0, 1, 2], [3]] and found["ranks"]["size"] == 4
    assert [r["exit_code"] for r in found["ranks"]["ranks"]] == [0] * 4


def test_the_check_of_the_job_fails_and_that_of_one_rank_does_not(recorded, jaxscope):
    run = recorded[0]
    failed, out, _ = jaxscope("check", "--output-format", "concise", run)
    assert failed == 1 and "JX850" in out
    assert jaxscope("check", str(Path(run) / "ranks" / "00002"))[0] == 0


def test_the_report_shows_the_groups_and_that_of_a_rank_only_its_own(recorded, jaxscope):
    run = recorded[0]
    whole = jaxscope("report", run)[1]
    assert "ranks 0-2  " in whole and "rank 3  " in whole and "slowest: rank " in whole
    own = jaxscope("report", "--rank", "3", run)[1]
    assert "Ranks" not in own and "step" in own and "JX850" not in own
    wrong, _, err = jaxscope("report", "--rank", "4", run)
    assert wrong == 2 and "no rank 4" in err


def test_texts_that_ranks_share_are_stored_once(recorded):
    blobs = list((Path(recorded[0]) / "blobs").iterdir())
    assert len(blobs) == 5, "StableHLO and HLO of two programs, and the source"


@pytest.mark.long
def test_the_fixture_fails_a_test_whose_ranks_differ(pytester, monkeypatch, clean_env):
    for name, value in clean_env.items():
        monkeypatch.setenv(name, value)
    pytester.makepyfile(
        f"""
        def test_ranks(jaxscope_ranks):
            jaxscope_ranks(2, {str(PROGRAM)!r}, "shape")
        """
    )
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "0")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*JX85? rank 1 and rank 0 compiled * x is f32[[]32] on rank 1, f32[[]16] on *"]
    )


def slurm_runs():
    try:
        return subprocess.run(["sinfo", "-h"], capture_output=True, timeout=5).stdout != b""
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_of_this_machine_gives_job_and_rank(launcher, tmp_path, clean_env):
    if shutil.which(launcher) is None:
        pytest.skip(f"{launcher} is not installed")
    if launcher == "srun" and not slurm_runs():
        pytest.skip("SLURM is installed, but its daemons do not run")
    root = ["--allow-run-as-root", "--oversubscribe"] if launcher == "mpirun" and os.geteuid() == 0 else []
    words = [
        launcher,
        *root,
        "-n",
        "2",
        sys.executable,
        "-m",
        "jaxscope",
        "run",
        "-q",
        "-o",
        str(tmp_path / "run"),
    ]
    done = subprocess.run([*words, str(PROGRAM)], env=clean_env, text=True, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "run" / "ranks").iterdir()) == ["00000", "00001"]
