"""One line per recompile, as it happens."""

import handwritten_runs
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.report.live import Follower
from jaxscope.schema import events as ev


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def test_the_first_compilation_is_no_news_and_each_further_one_is_one_line(run):
    log, f = Log(run), function("train_step")
    log.say(f)
    follower = Follower(run)
    log.compiled(f, key(leaf("batch['ids']", 32, 512, dtype="int32")), step=1)
    assert follower.poll() == []
    call = log.missed(f, key(leaf("batch['ids']", 32, 511, dtype="int32")), step=376)
    log.phase(call, "trace", 0.5)
    log.say(ev.PhaseBegan(call=call, phase="compile"))
    assert follower.poll() == []
    log.say(ev.Compiled(call=call, seconds=6.5), after=6.5)
    assert follower.poll() == [
        "jaxscope: train_step #2 (step 376, 7.0 s, train.py:140): batch['ids'] changed from i32[32,512] to i32[32,511]"
    ]
    assert follower.poll() == []


def test_eager_operations_libraries_and_fast_path_misses_are_no_news(run):
    log = Log(run)
    for f in (function("add", None, None, eager=True), function("normal", library=True)):
        log.say(f)
        for n in range(3):
            log.compiled(f, key(leaf("x", n)))
    mine = function("mine")
    log.say(mine)
    log.compiled(mine, key(leaf("x", 1)))
    log.missed(mine, key(leaf("x", 1, type="numpy.ndarray")))
    assert Follower(run).poll() == []


def test_a_recompile_that_fails_is_news_too(run):
    log, f = Log(run), function("f")
    log.say(f)
    log.compiled(f, key(leaf("x", 1)))
    call = log.missed(f, key(leaf("x", 2)))
    log.say(ev.PhaseBegan(call=call, phase="trace"))
    log.say(ev.PhaseFailed(call=call, phase="trace", seconds=0.5))
    assert Follower(run).poll() == [
        "jaxscope: f #2 (tracing failed, 0.50 s, train.py:140): x changed from f32[1] to f32[2]"
    ]


def test_a_second_process_compiles_for_the_first_time(run):
    f = function("f")
    for pid in (1, 2):
        log = Log(run, pid=pid, how="run" if pid == 1 else "child")
        log.say(f)
        log.compiled(f, key(leaf("x", 1)))
    assert Follower(run).poll() == []


def test_a_hostile_name_stays_on_its_line(run):
    log, f = Log(run), function("evil\x1b[2J\n")
    log.say(f)
    for n in (1, 2):
        log.compiled(f, key(leaf("x\r\n\u202e", n)))
    [line] = Follower(run).poll()
    assert line.isprintable()


def test_many_differences_are_cut_short(run):
    log, f = Log(run), function("f")
    log.say(f)
    for n in (1, 2):
        log.compiled(f, key(*[leaf(f"{a}", n) for a in "abcdefgh"]))
    [line] = Follower(run).poll()
    assert line.endswith(
        "a changed from f32[1] to f32[2]; b changed from f32[1] to f32[2]; and 6 more causes"
    )


def test_a_whole_training_run_has_a_line_per_recompile(tmp_path):
    assert len(Follower(handwritten_runs.training(tmp_path / "t")).poll()) == 14
