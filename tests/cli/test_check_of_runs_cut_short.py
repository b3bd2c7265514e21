"""``jaxscope check`` of a run that says less than it seems to: the program died, or the newest run recorded nothing."""

import json
import shutil

import handwritten_runs
import pytest

from jaxscope import cli
from jaxscope.log import store
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

pytestmark = pytest.mark.usefixtures("home")


def ended(home, code=0, *, signal=None, error=None):
    run = store.create(home / "one", argv=["train.py"])
    log = handwritten_runs.Log(run)
    if error is not None:
        where = Frame("train.py", 7, "main")
        log.say(ev.Died(error=error, message="boom\nand more", stack=[where]))
    log.end()
    handwritten_runs.exited(run, code, signal=signal)


def test_a_program_that_died_fails_the_check_and_says_of_what(check, home):
    ended(home, 1, error="ValueError")
    code, out, _ = check()
    assert code == 1
    assert (
        "the program failed with ValueError: boom (exit code 1): only what it did until then is checked"
        in out
    )
    assert "train.py:7" in out


def test_a_program_that_a_signal_ended_fails_the_check(check, home):
    ended(home, None, signal=9)
    code, out, _ = check()
    assert code == 1 and "the program was killed by SIGKILL" in out


def test_an_exit_code_that_the_program_chose_is_a_note(check, home):
    ended(home, 3)
    code, out, _ = check()
    assert code == 0 and "the program exited with code 3" in out
    assert check("--strict")[0] == 1


def test_a_program_that_ended_well_has_nothing_to_say(check, home):
    ended(home)
    assert check() == (0, "", "no findings")


def test_the_latest_of_another_program_is_not_checked_in_place_of_the_newest(check, home):
    ended(home)
    store.create(home / "two", argv=["other.py"])
    code, out, err = check()
    assert (code, out) == (2, "") and "the latest run, two, recorded nothing" in err
    assert "jaxscope check one" in err
    assert check("one")[0] == 0


def test_the_latest_of_the_same_program_is_checked_and_named(check, home):
    ended(home)
    store.create(home / "two", argv=["train.py", "--fast"])
    code, _, err = check()
    assert code == 0 and "two is newer but recorded nothing" in err


def recording(home, *more, name="one", close=True):
    run = store.create(home / name, argv=["train.py"])
    log = handwritten_runs.Log(run)
    for event in more:
        log.say(event)
    if close:
        log.end()
    return run


def test_a_recording_that_stopped_fails_the_check_though_the_program_ended_well(check, home):
    handwritten_runs.exited(
        recording(home, ev.RecordingStopped(reason="No space left on device"), close=False)
    )
    code, out, _ = check()
    assert code == 1 and "the recording stopped (No space left on device)" in out
    assert check("--no-recompiles-after", "0")[0] == 1


def test_a_child_whose_recording_stopped_fails_the_check(check, home):
    run = recording(home)
    child = handwritten_runs.Log(run, pid=2000, how="fork")
    child.say(ev.RecordingStopped(reason="File too large"))
    handwritten_runs.exited(run)
    code, out, _ = check()
    assert code == 1 and "the recording of 1 process stopped (File too large)" in out


def test_a_child_that_left_without_the_end_of_its_log_is_whole(check, home):
    run = recording(home)
    handwritten_runs.Log(run, pid=2000, how="fork")
    handwritten_runs.exited(run)
    assert check()[0] == 0


def test_a_log_without_an_end_fails_the_check_though_the_program_ended_well(check, home):
    handwritten_runs.exited(recording(home, close=False))
    code, out, _ = check()
    assert code == 1 and "the program's log is incomplete" in out


def test_a_recording_within_the_run_that_stopped_fails_the_check(check, home):
    run = recording(home)
    handwritten_runs.exited(run)
    sub = store.create(store.sub_run(run, "A=2"), settings={"A": "2"}, argv=["train.py"])
    handwritten_runs.Log(sub).say(ev.RecordingStopped(reason="No space left on device"))
    handwritten_runs.exited(sub)
    code, out, _ = check()
    assert code == 1 and "A=2: the recording stopped (No space left on device)" in out


def test_the_report_says_when_the_recording_stopped_and_counts_no_time_after_it(home, capsys):
    run = store.create(home / "one", argv=["train.py"])
    log = handwritten_runs.Log(run)
    step = handwritten_runs.function("update")
    log.say(step)
    log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", 3)), (1.0, 0.0, 1.0))
    log.missed(step, handwritten_runs.key(handwritten_runs.leaf("x", 4)))
    log.say(ev.PhaseBegan(call=2, phase="compile"))
    log.say(ev.RecordingStopped(reason="No space left on device"), after=2.0)
    handwritten_runs.exited(run, seconds=600)
    assert cli.command(["report", "one"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "2.0 s of 4.0 s that were recorded (50 %) went into" in out and "(100 %)" not in out
    assert "exit code 0, the recording stopped after 4.0 s: No space left on device" in out
    assert "Unfinished" not in out and "killed" not in out
    assert cli.command(["report", "one", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)["run"]
    assert not said["complete"] and said["degraded"][0]["seam"] == "log"
    (stopped,) = said["recording_stopped"]
    assert (stopped["time_seconds"], stopped["reason"]) == (4.0, "No space left on device")
    shutil.copytree(run.path, home / "two")
    assert cli.command(["diff", "one", "two"]) == 0
    assert "the recording stopped after 4.0 s" in " ".join(capsys.readouterr().out.split())


def test_a_phase_that_was_open_where_a_log_was_cut_off_has_no_length(home, capsys):
    run = store.create(home / "one", argv=["train.py"])
    log = handwritten_runs.Log(run)
    step = handwritten_runs.function("update")
    log.say(step)
    log.missed(step, handwritten_runs.key(handwritten_runs.leaf("x", 4)))
    log.say(ev.PhaseBegan(call=1, phase="compile"))
    handwritten_runs.exited(run, seconds=600)
    assert cli.command(["report", "one"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "at least 0 s of 10 min 0 s went into" in out
    assert "Unfinished where its log ends: compiling update #1 (" in out
