"""JX605, JX606 and JX608: what the main thread does in a loop, and what is not said of it."""

import pytest
from handwritten_runs import Log, copied, function, key, leaf

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

    def of(*times, copies=()):
        made = store.create(tmp_path / f"run{len(list(tmp_path.iterdir()))}")
        log = Log(made, transfers=True)
        step = function("step")
        log.say(step)
        log.compiled(step, key(leaf("x", 1)), line=3)
        for copy in copies:
            log.say(copy)
        log.say(ev.LineTimes(seconds=10.0, lines=list(times)), after=5.0)
        log.end()
        return [f for f in registry.findings(load(made)) if f.code in ("JX601", "JX605", "JX606")]

    return of


def time(doing, seconds, line, samples=50, **more):
    return LineTime(doing, [frame(line)], seconds, samples, **more)


CALL = time(CALLING, 0.5, 8)


def test_operations_in_a_loop_are_named_with_their_seconds_and_lines(found):
    (f,) = found(CALL, time(OPERATIONS, 2.0, 11), time(OPERATIONS, 1.0, 9))
    assert words.title(f) == (
        "the loop at train.py:6 spends about 3.0 s (25% of the run) in operations outside jit, on"
        " lines 9 and 11"
    )
    assert (f.code, f.severity, f.source, f.seconds) == ("JX605", WARNING, frame(11), 3.0)
    assert [e.source.line for e in f.evidence] == [11, 9]


def test_the_time_in_called_functions_is_that_of_the_lines_of_the_loop_that_call_them(found):
    def inside(seconds, line, of_the_loop):
        return LineTime(OPERATIONS, [Frame("net.py", line, "apply"), frame(of_the_loop)], seconds, 50)

    (f,) = found(CALL, inside(1.0, 3, 9), inside(0.9, 4, 9), time(OPERATIONS, 1.5, 11))
    assert words.title(f).endswith("on lines 9 and 11") and f.source == frame(9)
    (f,) = found(CALL, inside(2.0, 3, 9), inside(1.0, 4, 9), time(OPERATIONS, 0.1, 11))
    assert "at net.py:3 and net.py:4" in words.title(f)  # one line calls what takes nearly all time


def test_a_smaller_share_is_a_note_and_a_tiny_one_nothing(found):
    (f,) = found(CALL, time(OPERATIONS, 0.8, 11))
    assert f.severity == NOTE
    assert found(CALL, time(OPERATIONS, 0.4, 11)) == []


def test_a_time_of_few_samples_is_not_reported(found):
    assert found(CALL, time(OPERATIONS, 1.8, 11, samples=9), time(PYTHON, 1.9, 7, samples=9)) == []
    assert len(found(CALL, time(OPERATIONS, 3.0, 11, samples=1))) == 1  # one long call


def test_operations_for_which_the_thread_slept_are_not_reported(found):
    """The queue of the device is full: that a step takes long is not the fault of the next operation."""
    assert found(CALL, time(OPERATIONS, 3.0, 11, blocked=2.9)) == []


def test_python_code_between_calls_is_reported(found):
    (f,) = found(CALL, time(PYTHON, 5.0, 7, column=12))
    assert (f.code, f.severity, f.seconds) == ("JX606", WARNING, 5.0)
    assert words.title(f).startswith("the loop at train.py:6 spends about 5.0 s (42% of the run)")


def test_text_of_arrays_that_are_printed_in_each_step_is_part_of_the_finding_about_the_wait(found):
    text = time(PYTHON, 6.0, 11, library="numpy", column=8)
    (f,) = found(CALL, text)
    assert f.code == "JX606"
    printed = copied(11, via="print", text="print(y)", site=frame(11), seconds=1.0, steps=None)
    (f,) = found(CALL, text, copies=[printed])
    assert (f.code, f.seconds) == ("JX601", 7.0)
    assert words.title(f).endswith(". In addition, converting the arrays to text took 6.0 s")


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


STEPS = """\
import jax


def main(state, rows):
    for i in range(60_000):
        state = step(state)
        rows.append(state)
"""
HLO = """\
HloModule jit_step, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (state: f32[4]) -> f32[4] {
  %state = f32[4]{0} parameter(0)
  ROOT %sine = f32[4]{0} sine(%state)
}
"""


@pytest.mark.parametrize(
    ("source", "cost", "seconds", "severity"),
    [
        (STEPS, {"flops": 300.0, "bytes accessed": 900.0}, 5.0, WARNING),
        (STEPS, {"flops": 300.0, "bytes accessed": 900.0}, 2.0, NOTE),
        (STEPS, {"flops": 300.0, "bytes accessed": 900.0}, 0.5, None),
        (STEPS, {"flops": 1e6, "bytes accessed": 900.0}, 5.0, None),
        (STEPS, {}, 5.0, None),
        (STEPS.replace("range(60_000)", "loader"), {"flops": 300.0, "bytes accessed": 900.0}, 5.0, None),
    ],
    ids=["half the time", "a fifth", "too little", "a large program", "unknown", "a loop over data"],
)
def test_a_loop_of_calls_of_small_programs_is_reported(
    tmp_path, monkeypatch, source, cost, seconds, severity
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(source)
    made = store.create(tmp_path / "run")
    at = Frame(str(tmp_path / "train.py"), 6, "main")
    log = Log(made)
    log.say(function("step"))
    log.compiled(
        function("step"),
        key(leaf("state", 4)),
        program="p1",
        texts={"hlo": HLO},
        cost=cost,
        site=at,
        column=16,
    )
    log.say(ev.LineTimes(seconds=10.0, lines=[LineTime(CALLING, [at], seconds, 50, column=16)]), after=5.0)
    log.end()
    found = [f for f in registry.findings(load(made)) if f.code == "JX608"]
    assert [f.severity for f in found] == ([severity] if severity is not None else [])
    if found:
        assert words.fix_text(found[0]).startswith(
            "put the whole loop into one jitted function, as state, outputs = jax.lax.scan("
        )


def test_the_work_of_a_library_that_calls_a_jitted_function_is_no_python_code_of_the_user(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "fit.py"
    program.write_text(
        "import scipy\n\nfor start in starts:\n    result = scipy.optimize.minimize(loss, start)\n"
    )
    made = store.create(tmp_path / "run")
    at = Frame(str(program), 4, "<module>")
    log = Log(made)
    log.say(function("loss"))
    log.compiled(function("loss"), key(leaf("x", 4)), site=at, column=13)
    scipys = [LineTime(PYTHON, [at], 8.0, 50, column=13, library="scipy")]
    log.say(ev.LineTimes(seconds=10.0, lines=scipys), after=5.0)
    log.end()
    assert [f for f in registry.findings(load(made)) if f.code == "JX606"] == []


ROWS = """\
import pandas


def price(row):
    return float(row.a * row.b)


table["price"] = table.apply(lambda row: price(row), axis=1)
app.run(price)
"""


@pytest.mark.parametrize(
    ("seconds", "lines", "said"),
    [
        (3.0, (8,), "table.apply calls price again and again, from train.py:8: about 3.0 s"),
        (3.0, (8, 9), "table.apply calls price again and again, from train.py:8 and train.py:9: about 6.0 s"),
        (0.3, (8,), None),
    ],
)
def test_a_function_that_a_library_calls_for_each_row_needs_no_loop_in_the_program(
    tmp_path, monkeypatch, seconds, lines, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(ROWS)
    made = store.create(tmp_path / "run")
    log = Log(made)
    stacks = {8: [frame(8, "<lambda>"), frame(8, "<module>")], 9: [frame(9, "<module>")]}
    times = [LineTime(OPERATIONS, [frame(5, "price"), *stacks[line]], seconds, 50) for line in lines]
    log.say(ev.LineTimes(seconds=10.0, lines=times), after=5.0)
    log.end()
    found = [words.title(f) for f in registry.findings(load(made)) if f.code == "JX605"]
    assert [title[: len(said or "")] for title in found] == ([said] if said else [])


SOLVED = """\
from scipy.integrate import solve_ivp


class Model:
    def field(self, t, y):
        for i in range(3):
            y = y + self.pull(y, i)
        return y

    def run(self, y):
        return solve_ivp(self.field, [0, 1], y)
"""


def test_a_loop_in_a_function_that_a_solver_calls_is_no_reason_to_jit_only_an_iteration(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SOLVED)
    made = store.create(tmp_path / "run")
    log = Log(made)
    stack = [frame(7, "Model.field"), frame(11, "Model.run"), frame(14, "<module>")]
    log.say(ev.LineTimes(seconds=10.0, lines=[LineTime(OPERATIONS, stack, 6.0, 50)]), after=5.0)
    log.end()
    [found] = [f for f in registry.findings(load(made)) if f.code == "JX605"]
    assert words.title(found).startswith(
        "scipy calls Model.field again and again, from train.py:11: about 6.0 s"
    )
    assert "self.jitted = jax.jit(self.field) once, in __init__" in words.fix_text(found)
