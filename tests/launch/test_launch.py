"""``jaxscope launch``, and ``jaxscope run`` under a launcher: processes of one job, without JAX."""

import json
import signal
import subprocess
import sys

import pytest

from jaxscope.log import store

RANK = "import os, sys, time\nrank = os.environ['JAX_PROCESS_ID']\n"


@pytest.fixture
def launch(place):
    def go(*words, wait=True):
        done = subprocess.Popen(
            [sys.executable, "-m", "jaxscope", "launch", *words],
            cwd=place.path,
            env=place.env,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        place.started.append(done)
        if not wait:
            return done
        out, err = done.communicate(timeout=60)
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return go


def test_the_ranks_share_one_run_and_their_output_has_the_rank_before_each_line(place, launch):
    program = place.program(
        "train.py", RANK + "print('a'); print(sys.argv[1:], os.environ['JAX_NUM_PROCESSES'])"
    )
    done = launch("-n", "3", "-q", program, "-n", "9")
    assert done.returncode == 0 and done.stderr == ""
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[{n}] {text}" for n in range(3) for text in ("a", "['-n', '9'] 3")
    )
    (run,) = place.runs()
    assert run.meta["ranks"] == 3 and [r.path.name for r in store.rank_runs(run)] == [
        "00000",
        "00001",
        "00002",
    ]
    assert all(r.meta["job"] == run.meta["job"] for r in store.rank_runs(run))


def test_the_first_rank_that_fails_ends_the_job_with_its_exit_code(place, launch):
    text = RANK + "if rank == '1':\n    time.sleep(0.5); sys.exit(7)\ntime.sleep(60)"
    done = launch("-n", "3", "-q", place.program("train.py", text))
    assert done.returncode == 7 and "rank 1 ended with exit code 7; ending the other 2" in done.stderr


def test_a_signal_reaches_each_program_once(place, launch):
    text = RANK + (
        "import signal\nsignal.signal(signal.SIGINT, lambda *_: print('int', flush=True))\n"
        "print('up', flush=True)\nend = time.monotonic() + 2\n"
        "while time.monotonic() < end: time.sleep(0.05)\n"
    )
    process = launch("-n", "2", "-q", place.program("train.py", text), wait=False)
    assert {process.stdout.readline(), process.stdout.readline()} == {"[0] up\n", "[1] up\n"}
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert sorted(out.splitlines()) == ["[0] int", "[1] int"] and process.returncode == 0


def test_under_a_launcher_each_rank_writes_into_the_run_of_the_job_and_only_rank_0_reports(place):
    program = place.program("train.py", "import jax; print('ran')")
    place.fake_jax()
    slurm = {"SLURM_JOB_ID": "41", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    ranks = [place.start(program, env={**slurm, "SLURM_PROCID": str(n)}) for n in range(2)]
    ends = [(*p.communicate(timeout=60), p.returncode) for p in ranks]
    assert [(out, code) for out, _, code in ends] == [("ran\n", 0)] * 2
    assert "compiled nothing" in ends[0][1] and ends[1][1] == ""
    (run,) = place.runs()
    assert run.path.name == "train-slurm-41.0" and len(store.rank_runs(run)) == 2


def test_a_run_of_a_job_that_was_begun_again_does_not_keep_the_program_from_running(place):
    program = place.program("train.py", "print('ran')")
    env = {"JAXSCOPE_RANK": "0", "JAXSCOPE_RANKS": "2", "JAXSCOPE_JOB": "j"}
    for _ in range(2):
        assert place.run("-q", "-o", place.path / "out", program, env=env).stdout == "ran\n"
    assert (place.path / "out~2" / "ranks" / "00000" / "meta.json").exists()


def test_runs_that_machines_recorded_apart_are_merged_by_rank(place):
    program = place.program("code/train.py", "import jax")
    place.fake_jax("code")
    for n in range(2):
        env = {"JAXSCOPE_RANK": str(n), "JAXSCOPE_RANKS": "2", "JAXSCOPE_JOB": "j"}
        env["JAXSCOPE_HOME"] = str(place.path / f"host{n}")
        assert place.run("-q", program, env=env).returncode == 0
    jaxscope = [sys.executable, "-m", "jaxscope"]
    merge = [*jaxscope, "runs", "merge", "host0", "host1"]
    done = subprocess.run(merge, cwd=place.path, env=place.env, text=True, capture_output=True)
    assert done.returncode == 0 and "2 ranks of the job j merged" in done.stderr
    merged = store.RunDir(done.stdout.strip())
    assert [json.loads((r.path / "meta.json").read_text())["rank"] for r in store.rank_runs(merged)] == [0, 1]
    listed = subprocess.run(
        [*jaxscope, "runs"], cwd=place.path, env=place.env, text=True, capture_output=True
    )
    assert "(2 ranks)" in listed.stdout
    done = subprocess.run([*merge, "host0"], cwd=place.path, env=place.env, text=True, capture_output=True)
    assert done.returncode == 2 and "both of rank 0" in done.stderr
