"""Which call had been given the array that the program then missed."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.deaths import aval, donors
from jaxscope.model.load import load
from jaxscope.report.text import print_report
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

MESSAGE = "Array has been deleted with shape=float32[4,4]."


@pytest.fixture
def run(tmp_path):
    made = store.create(tmp_path / "run")
    log = Log(made)
    for name, donated in (("update", ["w"]), ("other", ["n"]), ("plain", [])):
        f = function(name)
        log.say(f)
        call = log.missed(f, key(leaf("w", 4, 4), leaf("n", 2)))
        log.phase(call, "lower", 0.1, donated=donated)
    log.say(
        ev.Died(error="RuntimeError", message=MESSAGE, stack=[Frame("/home/ann/work/train.py", 31, "main")])
    )
    log.end()
    return made


def test_only_a_donated_argument_of_that_shape_and_dtype_can_be_it(run):
    assert [(c.function.name, path) for c, path in donors(load(run), MESSAGE)] == [("update", "w")]


def test_without_a_shape_every_donation_can_be_it_and_other_errors_have_none(run):
    said = "INVALID_ARGUMENT: Buffer has been deleted or donated."
    assert [c.function.name for c, _ in donors(load(run), said)] == ["other", "update"]
    assert donors(load(run), "division by zero") == []


def test_the_report_says_first_why_it_died(run, capsys):
    print_report(load(run), directory=run)
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith("Uncaught RuntimeError: Array has been deleted")
    assert "update donates w, f32[4,4]" in " ".join(lines[4:7])


def test_an_argument_that_a_damaged_log_does_not_have_has_an_unknown_type(run):
    (update,) = [f for f in load(run).functions.values() if f.name == "update"]
    assert [aval(update.compilations[0], path) for path in ("w", "gone")] == ["f32[4,4]", "?"]
