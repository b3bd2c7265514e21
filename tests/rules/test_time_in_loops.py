"""JX605 and JX606: what the main thread does in a loop, and what is not said of it."""

import pytest
from written import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.findings import NOTE, WARNING
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import CALLING, OPERATIONS, PYTHON, WAITING, LineTime

TRAIN = """\
import numpy as np
from training import step, make


def main():
    for batch in batches:
        x = np.roll(batch, 1)
        w = step(w, x)
        y = trained(w, x)
        w = self.update(w)
        rows.append(float(y))
"""


def frame(line, name="main"):
    return Frame("train.py", line, name)


@pytest.fixture
def found(tmp_path, monkeypatch):
    """A function that returns the findings of a program of 10 seconds with these times."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)

    def of(*times):
        made = store.create(tmp_path / f"run{len(list(tmp_path.iterdir()))}")
        log = Log(made)
        step = function("step")
        log.say(step)
        log.compiled(step, key(leaf("x", 1)), line=3)
        log.say(ev.LineTimes(seconds=10.0, lines=list(times)), after=5.0)
        log.end()
        return [f for f in registry.findings(load(made)) if f.code in ("JX605", "JX606")]

    return of


def time(doing, seconds, line, samples=50, **more):
    return LineTime(doing, [frame(line)], seconds, samples, **more)


CALL = time(CALLING, 0.5, 8)


def test_operations_in_a_loop_are_named_with_their_seconds_and_lines(found):
    (f,) = found(CALL, time(OPERATIONS, 2.0, 11), time(OPERATIONS, 1.0, 9))
    assert words.title(f) == (
        "the loop at train.py:6 spends about 3.0 s (30% of the measured time) in operations outside jit, at"
        " train.py:11 and train.py:9"
    )
    assert (f.code, f.severity, f.source, f.seconds) == ("JX605", WARNING, frame(11), 3.0)
    assert [e.source.line for e in f.evidence] == [11, 9]


def test_a_smaller_share_is_a_note_and_a_tiny_one_nothing(found):
    (f,) = found(CALL, time(OPERATIONS, 0.8, 11))
    assert f.severity == NOTE
    assert found(CALL, time(OPERATIONS, 0.4, 11)) == []


def test_a_time_of_few_samples_is_not_reported(found):
    assert found(CALL, time(OPERATIONS, 3.0, 11, samples=9), time(PYTHON, 5.0, 7, samples=9)) == []


def test_operations_for_which_the_thread_slept_are_not_reported(found):
    """The queue of the device is full: that a step takes long is not the fault of the next operation."""
    assert found(CALL, time(OPERATIONS, 3.0, 11, blocked=2.9)) == []


def test_python_code_between_calls_is_reported(found):
    (f,) = found(CALL, time(PYTHON, 5.0, 7, column=12))
    assert (f.code, f.severity, f.seconds) == ("JX606", WARNING, 5.0)
    assert words.title(f).startswith("the loop at train.py:6 spends about 5.0 s (50% of the measured time)")


def test_python_code_of_a_loop_without_jitted_calls_is_not_reported(found):
    assert found(time(PYTHON, 5.0, 7)) == []


def test_python_code_is_not_reported_where_the_loop_waits_longer_for_the_device(found):
    assert found(CALL, time(PYTHON, 3.0, 7), time(WAITING, 4.0, 11)) == []


@pytest.mark.parametrize("line", [8, 9, 10], ids=["step", "a variable", "self.update"])
def test_a_call_that_may_be_one_of_a_jitted_function_is_no_python_code(found, line):
    """JAX compiled ``step`` at another line, so that the call here was not recognized."""
    assert found(CALL, time(PYTHON, 5.0, line, column=12)) == []


@pytest.mark.parametrize(("library", "reported"), [("numpy", 1), ("PIL", 1), ("flax", 0), ("equinox", 0)])
def test_code_of_a_library_around_jax_is_no_python_code_of_the_user(found, library, reported):
    assert len(found(CALL, time(PYTHON, 5.0, 9, library=library))) == reported
