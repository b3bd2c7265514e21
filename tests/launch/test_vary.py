"""``jaxscope run --vary``: one program several times, as runs within one run."""

import json
import os
import signal

import pytest

from jaxscope.log import store

SHOWS = """
import os, sys
print(os.environ.get("MESH"), sys.argv[1:], flush=True)
if os.environ.get("MESH") in ("bad", "worse"):
    sys.exit({"bad": 5, "worse": 6}[os.environ["MESH"]])
if os.environ.get("MESH") == "killed":
    os.kill(os.getpid(), 9)
"""
WAITS = """
import os, sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(0 if "--catches" in sys.argv else 130)
"""


def labels(run):
    return [store.label_of(r) for r in (run, *store.sub_runs(run))]


def test_the_program_is_run_once_a_value_each_a_run_of_its_own_within_the_first(place):
    program = place.program("train.py", SHOWS)
    done = place.run("-q", "--vary", "MESH=64x4,'32,8'", "--vary", "--lr=1,2", program, "--lr", "0")
    assert done.returncode == 0 and done.stdout.splitlines() == [
        "64x4 ['--lr', '1']",
        "64x4 ['--lr', '2']",
        "32,8 ['--lr', '1']",
        "32,8 ['--lr', '2']",
    ]
    assert done.stderr.splitlines() == [
        f"jaxscope: {n} of 4: MESH={mesh} --lr={lr}"
        for n, (mesh, lr) in enumerate([("64x4", 1), ("64x4", 2), ("32,8", 1), ("32,8", 2)], 1)
    ]
    (run,) = place.runs()
    assert labels(run) == ["MESH=64x4 --lr=1", "MESH=64x4 --lr=2", "MESH=32,8 --lr=1", "MESH=32,8 --lr=2"]
    assert [r.meta["argv"][1:] for r in store.sub_runs(run)] == [["--lr", "2"], ["--lr", "1"], ["--lr", "2"]]
    assert len(place.events("ProgramExited", store.sub_runs(run)[2])) == 1


def test_the_first_failure_is_the_exit_code_and_the_rest_goes_on(place):
    program = place.program("train.py", SHOWS)
    done = place.run("-q", "--vary", "MESH=a,bad,worse,b", program)
    assert done.returncode == 5 and [line.split()[0] for line in done.stdout.splitlines()] == ["a", "bad", "worse", "b"]  # fmt: skip


def test_one_that_is_killed_does_not_end_the_rest(place):
    program = place.program("train.py", SHOWS)
    done = place.run("-q", "--vary", "MESH=killed,b", program)
    assert done.returncode == -signal.SIGKILL and done.stdout.splitlines()[-1].startswith("b")


@pytest.mark.parametrize("catches", [True, False])
def test_ctrl_c_ends_the_rest_whatever_the_program_makes_of_it(place, catches):
    program = place.program("train.py", WAITS)
    process = place.start("-q", "--vary", "MESH=1,2,3", program, *(["--catches"] if catches else []))
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    assert process.returncode == (0 if catches else 130)
    assert (
        out == "" and err.endswith("interrupted: 2 of 3 not run\n") and len(store.sub_runs(place.latest)) == 0
    )


def test_one_value_is_a_setting_of_an_ordinary_run(place):
    program = place.program("train.py", SHOWS)
    done = place.run("-q", "--vary", "MESH=64x4", program)
    assert done.stdout == "64x4 []\n" and done.stderr == "" and labels(place.latest) == ["MESH=64x4"]
    done = place.run("--detach", "-q", "--vary", "MESH=2x2", program)
    assert done.returncode == 0 and place.latest.settings == [("MESH", "2x2")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--detach", "--vary", "A=1,2", "{}"], "does not work with --detach"),
        (["--tui", "--vary", "A=1,2", "{}"], "does not work with --tui"),
        (["--vary", "A=1,2", "-"], "on stdin can be read only once"),
        (["--vary", "A", "{}"], "has no values"),
    ],
)
def test_what_cannot_be_is_reported_before_anything_runs(place, words, said):
    program = place.program("train.py", SHOWS)
    done = place.run(*(word.format(program) for word in words))
    assert done.returncode == 2 and said in done.stderr and done.stdout == "" and not place.runs()


def test_values_that_make_the_same_directory_name_are_distinguished(place):
    program = place.program("train.py", SHOWS)
    place.run("-q", "--vary", "MESH=a,b/c,b:c,../..", program)
    (run,) = place.runs()
    assert [r.path.name for r in store.sub_runs(run)] == ["MESH=b-c", "MESH=b-c~2", "MESH="]
    assert labels(run) == ["MESH=a", "MESH=b/c", "MESH=b:c", "MESH=../.."]
    assert json.loads((store.sub_runs(run)[0].path / "meta.json").read_text())["settings"] == {"MESH": "b/c"}
