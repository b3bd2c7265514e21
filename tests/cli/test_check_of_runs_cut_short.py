"""``jaxscope check`` of a run that says less than it seems to: the program died, or the newest run recorded nothing."""

import pytest
import written

from jaxscope import cli
from jaxscope.log import store
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home" / "runs"


@pytest.fixture
def check(capsys):
    def call(*argv: str) -> tuple[int, str, str]:
        code = cli.command(["check", *argv])
        out, err = capsys.readouterr()
        return code, " ".join(out.split()), " ".join(err.split())

    return call


def ended(home, code=0, *, signal=None, error=None):
    run = store.create(home / "one", argv=["train.py"])
    log = written.Log(run)
    if error is not None:
        where = Frame("train.py", 7, "main")
        log.say(ev.Died(error=error, message="boom\nand more", stack=[where]))
    log.end()
    written.exited(run, code, signal=signal)


def test_a_program_that_died_fails_the_check_and_says_of_what(check, home):
    ended(home, 1, error="ValueError")
    code, out, _ = check()
    assert code == 1
    assert (
        "the program died of ValueError: boom (exit code 1): what is checked is what it did until then" in out
    )
    assert "train.py:7" in out


def test_a_program_that_a_signal_ended_fails_the_check(check, home):
    ended(home, None, signal=9)
    code, out, _ = check()
    assert code == 1 and "the program was ended by SIGKILL" in out


def test_an_exit_code_that_the_program_chose_is_a_note(check, home):
    ended(home, 3)
    code, out, _ = check()
    assert code == 0 and "the program left with exit code 3" in out
    assert check("--strict")[0] == 1


def test_a_program_that_ended_well_has_nothing_to_say(check, home):
    ended(home)
    assert check() == (0, "", "no findings")


def test_the_latest_of_another_program_is_not_checked_in_place_of_the_newest(check, home):
    ended(home)
    store.create(home / "two", argv=["other.py"])
    code, out, err = check()
    assert (code, out) == (2, "") and "nothing is recorded in the newest run, two" in err
    assert "jaxscope check one" in err
    assert check("one")[0] == 0


def test_the_latest_of_the_same_program_is_checked_and_named(check, home):
    ended(home)
    store.create(home / "two", argv=["train.py", "--fast"])
    code, _, err = check()
    assert code == 0 and "two is newer, but nothing is recorded in it" in err
