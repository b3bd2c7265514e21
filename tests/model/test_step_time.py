"""Where the time of a step goes, from logs written by hand."""

import pytest
from handwritten_runs import CWD, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import step_time
from jaxscope.model.load import load
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

F = function("train_step")
LOSS = {"direction": "device_to_host", "via": "float", "text": "float(loss)"}
PUT = {"direction": "host_to_device", "via": "device_put", "text": "jax.device_put(batch)"}


class Steps:
    """A program whose steps end when it is told."""

    def __init__(self, path):
        self.run = store.create(path)
        self.log = Log(self.run, transfers=True)
        self.log.say(F)
        self.spent = {}
        self.step = 0

    def end(self, seconds, *, steps=1, marked=True, **more):
        self.step += steps
        self.log.now += seconds
        clock = int(self.log.now * 1e9)
        self.log.say(ev.StepTimed(step=self.step, marked=marked, clock_ns=clock, **more))

    def takes(self, line, seconds, *, kind=LOSS, **more):
        total, count = self.spent.get((line, kind["via"]), (0.0, 0))
        self.spent[line, kind["via"]] = total, count = total + seconds, count + 1
        site = Frame(f"{CWD}/train.py", line, "main")
        facts = {**kind, "site": site, "count": count, "seconds": 9.0, "step_seconds": total, **more}
        self.log.say(ev.Transferred(**facts))

    @property
    def found(self):
        return step_time.step_seconds(load(self.run))


@pytest.fixture
def program(tmp_path):
    """Step 1 compiles; steps 2 to 5 take 50 ms, of which 30 wait at line 31, and 5 copy at line 28."""
    made = Steps(tmp_path / "run")
    made.log.compiled(F, key(leaf("x", 1)), (0.5, 0.1, 2.0), line=30)
    made.takes(31, 1.0)
    made.end(0.2)
    for _ in range(4):
        made.takes(28, 0.005, kind=PUT)
        made.takes(31, 0.03)
        made.end(0.05)
    return made


def parts(found):
    return {(s.cause, s.line and s.line.line): pytest.approx(s.seconds) for s in found.spent}


def test_the_steps_without_a_compilation_are_divided_by_line(program):
    found = program.found
    assert (found.first, found.last, found.steps, found.compiling) == (2, 5, 4, False)
    assert found.seconds == pytest.approx(0.05) and found.rest == pytest.approx(0.015)
    assert parts(found) == {("wait", 31): 0.03, ("copy", 28): 0.005}
    assert [s.text for s in found.spent] == ["float(loss)", "jax.device_put(batch)"]


def test_steps_that_compile_later_are_left_out(program):
    program.log.compiled(F, key(leaf("x", 2)), (0.5, 0.1, 2.0), line=30)
    program.takes(31, 0.9)
    program.end(1.0)
    for _ in range(2):
        program.takes(31, 0.03)
        program.end(0.07)
    found = program.found
    assert (found.first, found.last, found.steps) == (2, 8, 6)
    assert found.seconds == pytest.approx((4 * 0.05 + 2 * 0.07) / 6)
    assert parts(found) == {("wait", 31): 0.03, ("copy", 28): 4 * 0.005 / 6}


def test_compiling_is_a_part_where_every_step_compiles(tmp_path):
    program = Steps(tmp_path / "run")
    for n in range(5):
        call = program.log.compiled(F, key(leaf("x", n)), (0.5, 0.1, 1.4), line=30)
        program.log.missed(F, key(leaf("y", n)), inside=call, line=12)
        program.log.phase(call + 1, "trace", 0.25)  # part of the first call's
        program.takes(31, 0.5)
        program.end(1.0)
    found = program.found
    assert (found.first, found.steps, found.compiling) == (2, 4, True)
    assert found.seconds == pytest.approx(3.25)
    assert parts(found) == {("compile", 30): 2.0, ("wait", 31): 0.5} and found.rest == pytest.approx(0.75)


def test_nothing_is_known_where_the_parts_exceed_the_step(program):
    program.takes(31, 1.5)
    program.end(0.05)
    assert program.found is None


def test_parts_that_exceed_the_step_by_a_rounding_leave_no_rest(program):
    program.takes(31, 0.0655)
    program.end(0.05)
    program.takes(31, 0.05)
    program.end(0.0501)
    assert program.found.rest >= 0
    program.takes(31, 1e30)  # a damaged figure is not counted
    program.end(0.05)
    assert program.found is not None


@pytest.mark.parametrize("change", [{"marked": False}, {"thread": 7}])
def test_steps_that_are_counted_in_another_way_are_not_compared(program, change, monkeypatch):
    if "thread" in change:
        monkeypatch.setattr("threading.get_ident", lambda: 7)
        change = {}
    program.step = 100
    program.end(0.5, **change)
    found = program.found
    assert found is None if change else found.last == 5


def test_too_few_steps_have_no_mean(tmp_path):
    program = Steps(tmp_path / "run")
    for _ in range(3):
        program.end(0.05)
    assert program.found is None  # two steps have a beginning and an end
    program.end(0.05)
    assert program.found.steps == 3 and program.found.spent == [] and program.found.rest > 0


def test_the_steps_under_the_profiler_are_left_out_and_show_how_long_the_device_waited(program):
    program.log.say(
        ev.Profiled(first_step=6, last_step=8, seconds=0.6, devices=2, busy_seconds=0.3, cost_seconds=0.4),
        after=1.0,
    )
    program.end(0.0, steps=3)
    for _ in range(2):
        program.takes(31, 0.03)
        program.end(0.05)
    found = program.found
    assert (found.last, found.steps) == (10, 6) and found.seconds == pytest.approx(0.05)
    assert found.device_waits == pytest.approx(0.75) and found.profiled == (6, 8)


@pytest.mark.parametrize(
    "facts", [{"busy_seconds": None}, {"devices": None}, {"busy_seconds": 3.0}, {"seconds": None}]
)
def test_a_profile_that_does_not_say_when_devices_were_busy_gives_no_share(program, facts):
    known = {"seconds": 0.6, "devices": 2, "busy_seconds": 0.3, "first_step": 6, "last_step": 8}
    program.log.say(ev.Profiled(**{**known, **facts}), after=1.0)
    assert program.found.device_waits is None
