"""How the wall time of a run is divided, from logs written by hand."""

import threading

import handwritten_runs
import pytest
from handwritten_runs import Log, copied, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.model.wall_time import wall_time
from jaxscope.present.runs import not_compiling
from jaxscope.present.spans import plain
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import LineTime, LineTimes

F = function("train_step")


@pytest.fixture
def log(tmp_path):
    """A program that imports JAX 2.5 s after its start, and compiles for 5 s from its third second on."""
    made = Log(store.create(tmp_path / "run"), at=2.5, transfers=True)
    made.say(F, after=0.5)
    made.compiled(F, key(leaf("x", 1)), (1.0, 0.5, 3.5))
    return made


def divided(log):
    handwritten_runs.exited(log.run, seconds=16.0)
    return load(log.run)


def wait(log, seconds, *, begin=9.0, **more):
    first = handwritten_runs.T0 + int(begin * 1e9)
    log.now = 15.0
    facts = {"seconds": seconds, "step_seconds": seconds, "first_ns": first, "last_ns": first + int(4e9)}
    log.say(copied(**{**facts, **more}))


def test_the_parts_of_a_run_add_up_and_begin_with_the_program(log):
    wait(log, 2.0)
    run = divided(log)
    t = wall_time(run)
    assert (t.before_compiling, t.compiling, t.waiting, t.rest) == (
        pytest.approx(3.0), pytest.approx(5.0), 2.0, pytest.approx(6.0),
    )  # fmt: skip
    assert t.before_compiling + t.compiling + t.waiting + t.rest == pytest.approx(t.seconds)
    assert plain(not_compiling(run)) == (
        "The other 11.0 s: 3.0 s until the first compilation (imports, set-up), 2.0 s waiting for the devices,"
        " 6.0 s for everything else"
    )


@pytest.mark.parametrize(
    "unknown",
    [{"step_seconds": 0.0}, {"begin": 2.6}, {"seconds": 9.0, "step_seconds": 9.0}],
    ids=["of other threads", "partly before the first compilation", "longer than there was time"],
)
def test_waits_that_may_overlap_other_parts_are_not_a_part(log, unknown):
    wait(log, **{"seconds": 2.0, **unknown})
    t = wall_time(divided(log))
    assert t.waiting is None
    assert t.rest == pytest.approx(8.0)


def test_the_samples_show_waits_in_calls_that_no_transfer_counts(log):
    wait(log, 0.5)
    line = [Frame("/home/ann/train.py", 8, "main")]
    times = [
        LineTime("calling", line, seconds=5.0, blocked=4.0, samples=50),
        LineTime("waiting", line, seconds=1.0, blocked=1.0, samples=10),
    ]
    log.say(LineTimes(seconds=12.0, lines=times))
    t = wall_time(divided(log))
    assert (t.waiting, t.rest) == (pytest.approx(5.0), pytest.approx(3.0))


def test_waits_beside_compilations_of_another_thread_are_not_a_part(log):
    call = log.missed(F, key(leaf("x", 2)))
    other = threading.Thread(target=log.say, args=(ev.Traced(call=call, seconds=0.5), 1.0))
    other.start()
    other.join()
    wait(log, 2.0)
    assert wall_time(divided(log)).waiting is None


def test_without_a_known_part_there_is_no_line(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    log.say(F)
    log.compiled(F, key(leaf("x", 1)))
    run = divided(log)
    assert wall_time(run).before_compiling == 0
    assert not not_compiling(run)


def test_a_run_that_compiles_nearly_all_the_time_has_no_such_line(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    log.say(F)
    log.compiled(F, key(leaf("x", 1)), (1.0, 0.5, 13.5))
    assert not not_compiling(divided(log))


def test_without_a_compilation_or_the_end_of_the_program_nothing_is_divided(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    log.say(F)
    assert wall_time(load(log.run)) is None
    log.compiled(F, key(leaf("x", 1)))
    log.say(ev.RecordingStopped(reason="disk full"))
    assert wall_time(divided(log)) is None
