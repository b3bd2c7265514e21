"""What crossed between host and devices, as a log tells it and as keys do."""

from __future__ import annotations

import pytest
from handwritten_runs import ONE_CPU, TWO_CPU, Log, copied, function, key, leaf

from jaxscope.log import store
from jaxscope.model import transfers
from jaxscope.model.load import load
from jaxscope.report.json_report import as_json, dumps
from jaxscope.schema import events as ev

F = function("step")
S = 1_000_000_000


@pytest.fixture
def log(tmp_path):
    made = Log(store.create(tmp_path / "run"), transfers=True)
    made.say(F)
    return made


def numpy(path, *shape, **more):
    return leaf(path, *shape, type="numpy.ndarray", sharding=None, committed=None, **more)


def of(log):
    return transfers.transfers(load(log.run))


def test_the_latest_word_on_a_line_counts_whatever_the_order(log):
    for count in (1, 100, 7):
        log.say(copied(count=count))
    log.say(copied(line=32, count=3, seconds=None, bytes=None))
    found = of(log)
    assert [(t.source.line, t.count, t.bytes, t.blocked_seconds) for t in found] == [
        (31, 100, 400, 1.3),
        (32, 3, None, None),
    ]
    assert found[0].share == pytest.approx(0.65) and found[1].share is None and found[0].bytes_each == 4


def test_where_nobody_counted_there_is_nothing_and_not_none_of_it(tmp_path):
    log = Log(store.create(tmp_path / "old"))
    log.say(F)
    compiled(log, key(numpy("x", 8)))
    assert of(log) == [] and as_json(load(log.run))["transfers"] is None


def test_a_run_without_any_has_none_of_it(log):
    assert as_json(load(log.run))["transfers"] == []


def compiled(log, k, line=140, devices="0"):
    call = log.missed(F, k, line=line)
    for phase in ("trace", "lower"):
        log.phase(call, phase, 0.1)
    log.phase(call, "compile", 0.1, devices=devices)


def test_numpy_arguments_of_a_watched_function_are_counted_by_its_calls(log):
    log.say(ev.Watched(function=F.function, step=True))
    compiled(log, key(numpy("batch['x']", 64, 8), leaf("w", 8), numpy("flag", dtype="bool")))
    log.say(ev.Called(function=F.function, count=300))
    [t] = of(log)
    assert (t.direction, t.kind, t.count, t.bytes, t.steps) == (
        "host_to_device", "argument", 300, 300 * (64 * 8 * 4 + 1), 300,
    )  # fmt: skip
    assert t.paths == ("batch['x']", "flag") and t.source.line == 140 and t.blocked_seconds is None


@pytest.mark.parametrize(
    "second",
    [key(numpy("x", 29)), key(leaf("x", 64)), None],
    ids=["another size", "a jax array", "a key that could not be read"],
)
def test_calls_of_several_kinds_are_reported_one_by_one_without_a_count(log, second):
    log.say(ev.Watched(function=F.function))
    compiled(log, key(numpy("x", 64)))
    compiled(log, second)
    log.say(ev.Called(function=F.function, count=300))
    found = of(log)
    assert {t.count for t in found} == {None} and 256 in {t.bytes for t in found}


def test_of_an_unwatched_function_the_bytes_of_a_call_are_known_and_the_count_is_not(log):
    compiled(log, key(numpy("x", 64, dtype="bfloat16"), numpy("n", 3, dtype="float8_e4m3fn")))
    [t] = of(log)
    assert (t.count, t.bytes, t.bytes_each, t.steps) == (None, 131, 131, None)


def test_a_program_on_several_devices_says_itself_what_is_copied_to_it(log):
    compiled(log, key(numpy("x", 64)), devices="0-3")
    compiled(log, key(numpy("x", 32)), devices=None)
    assert [t.bytes for t in of(log)] == []


def test_an_array_of_another_device_is_copied_in_every_call(log):
    far = leaf("u", 16, sharding=1)
    compiled(log, key(leaf("w", 16), far, shardings=[ONE_CPU, TWO_CPU]))
    [t] = of(log)
    assert (t.direction, t.count, t.bytes, t.paths) == ("device_to_device", None, 64, ("u",))


def test_sizes_that_are_not_known_are_not_guessed(log):
    odd = [numpy("a", "n"), numpy("b", 3, dtype="key<fry>"), numpy("c", dtype=None), numpy("d", 0)]
    compiled(log, key(*odd))
    assert of(log) == []


def test_steps_are_counted_by_marks_or_by_calls_of_the_step_function(log):
    run = load(log.run)
    assert transfers.steps(run, run.main) is None
    other = function("other", line=7)
    log.say(other)
    for f, step, count in ((other, False, 9), (F, True, 40)):
        log.say(ev.Watched(function=f.function, step=step))
        log.say(ev.Called(function=f.function, count=count))
    run = load(log.run)
    assert transfers.steps(run, run.main) == 40
    log.say(ev.Step(index=12))
    run = load(log.run)
    assert transfers.steps(run, run.main) == 12


def test_damaged_figures_are_no_exception(log):
    for e in (
        copied(count=-3, bytes=-1, seconds=float("nan"), first_ns=9, last_ns=-4),
        copied(line=0, direction="\x1b[31m", via="\x00", text="\u202e", site=None, views=10**20, count=2**62),
        copied(line=-5, seconds=1e300, steps=-1, first_step=-9),
    ):
        log.say(e)
    run = load(log.run)
    assert '"transfers"' in dumps(as_json(run))
    assert {t.blocked_seconds for t in transfers.transfers(run)} == {None, 1.3}
    assert all(t.share is None or 0 <= t.share <= 1 for t in transfers.transfers(run))
