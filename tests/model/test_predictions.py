"""Recompiles that are still to come, and what became of them."""

import msgspec
import pytest
from handwritten_runs import ONE_CPU, TWO_CPU, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.model.predictions import (
    CONFIRMED,
    PENDING,
    WITHDRAWN,
    came_back,
    predictions,
    results_of,
    sentence,
)
from jaxscope.present import findings as words
from jaxscope.present.render import text
from jaxscope.report.live import Follower
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame, Leaf, OutLeaf, Sharding

F = function("step")
SPLIT = Sharding("NamedSharding", "P('d',) on d=4", "0-3", (("d", 4, "Auto"),), "P('d',)", "unpinned_host")
WEAK = Leaf("state.count", "float", (), "float32", True)
STRONG = leaf("state.count")
W, BATCH = leaf("state.w", 4), leaf("batch", 8)


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


@pytest.fixture
def log(run):
    made = Log(run)
    made.say(F)
    return made


def out(path, *shape, dtype="float32", weak=False) -> OutLeaf:
    return OutLeaf(path, shape, dtype, weak)


def compiled(log, k, results, sharding=ONE_CPU, committed=False, of=F, **more):
    call = log.missed(of, k, **more)
    log.phase(call, "trace", 0.1, out=results)
    log.phase(call, "lower", 0.1)
    log.phase(
        call, "compile", 1.0, out_shardings=[sharding], out_sharding_of=[0] * len(results), out_committed=committed
    )  # fmt: skip
    return call


RESULTS = [out("[0].w", 4), out("[0].count"), out("[1]")]


def one(run):
    [p] = predictions(load(run))
    return p


def test_a_weak_counter_that_comes_back_strong_is_announced_after_the_first_compilation(run, log):
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    p = one(run)
    assert (p.argument, p.result, p.status) == ("state", "[0]", PENDING)
    assert [(c.kind, c.path, c.certainty) for c in p.causes] == [("weak_type", "state.count", "likely")]
    assert text(sentence(p)) == (
        "if the result[0] of step is passed as state, the next call recompiles: "
        "state.count is no longer weakly typed; it changed from f32[] weak (float) to f32[] (jax.Array)"
    )
    [finding] = [f for f in registry.findings(load(run)) if f.code == "JX130"]
    assert (
        words.fix_text(finding)
        == "before the first call, make state.count an array with a fixed dtype: jnp.asarray(state.count, 'float32')"
    )


def test_the_warning_is_shown_live_before_the_second_compilation(run, log):
    follower = Follower(run)
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    [line] = follower.poll()
    assert (
        line.startswith("jaxscope: step #1: if the result[0] of step is passed as state")
        and "make state.count" in line
    )


def test_the_next_miss_confirms_it(run, log):
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    second = compiled(log, key(W, STRONG, BATCH), RESULTS)
    p = one(run)
    assert p.status == CONFIRMED and p.confirmed_by.call == second
    assert not [f for f in registry.findings(load(run)) if f.code == "JX130"], (
        "the recompile itself is the finding"
    )


def test_what_another_line_made_is_no_result_that_came_back(run, log):
    here, there = Frame("train.py", 9, "main"), Frame("train.py", 4, "main")
    for made, status in ((here, CONFIRMED), (there, WITHDRAWN)):
        other = function("step", line=10 + made.line)
        log.say(other)
        compiled(log, key(W, WEAK, BATCH), RESULTS, of=other, site=here)
        came = {"made": [made], "made_by": [0, 0, -1]}
        compiled(log, key(W, STRONG, BATCH), RESULTS, of=other, site=here, **came)
        assert predictions(load(run))[-1].status == status


@pytest.mark.parametrize(
    ("wrappers", "line", "back"), [(["flax.nnx.jit"], 9, True), (["flax.nnx.jit"], 4, False), ([], 9, False)]
)
def test_a_module_that_nnx_jit_updates_comes_back_if_the_call_made_it(run, log, wrappers, line, back):
    train, site = function("train", line=30, wrappers=wrappers), Frame("train.py", 9, "main")
    log.say(train)
    results = [out("[0][0].states[0][0]", 4)]
    compiled(log, key(leaf("model.w", 4), shardings=[ONE_CPU]), results, SPLIT, of=train, site=site)
    second = key(leaf("model.w", 4), shardings=[SPLIT])
    compiled(
        log, second, results, SPLIT, of=train, site=site, made=[Frame("train.py", line, "main")], made_by=[0]
    )
    model = load(run)
    [*_, last] = model.compilations.values()
    assert came_back(model, last, "model.w") == back


def test_a_state_that_comes_back_on_the_mesh_is_reported_by_its_sharding(run, log):
    compiled(log, key(W, BATCH), [out("[0].w", 4), out("[1]")], SPLIT, committed=True)
    [cause] = one(run).causes
    assert (cause.kind, cause.path, cause.level) == ("mesh", "state.w", "trace")


@pytest.mark.parametrize(
    ("sharding", "status"),
    [(SPLIT, CONFIRMED), (TWO_CPU, WITHDRAWN), (None, PENDING)],
    ids=["the predicted one", "another one", "unknown"],
)
def test_a_predicted_sharding_is_confirmed_by_that_sharding_alone(run, log, sharding, status):
    compiled(log, key(W, BATCH), [out("[0].w", 4), out("[1]")], SPLIT, committed=True)
    moved = leaf("state.w", 4, sharding=None if sharding is None else 1, committed=True)
    compiled(log, key(moved, BATCH, shardings=[ONE_CPU, sharding or ONE_CPU]), [out("[0].w", 4), out("[1]")])
    assert predictions(load(run))[0].status == status


def test_a_result_that_fits_announces_nothing(run, log):
    compiled(log, key(W, STRONG, BATCH), RESULTS)
    assert predictions(load(run)) == []


def test_an_argument_that_stays_the_same_in_the_next_miss_withdraws_it(run, log):
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    compiled(log, key(W, WEAK, leaf("batch", 5)), RESULTS)
    assert predictions(load(run))[0].status == WITHDRAWN


def test_a_watched_call_that_hits_withdraws_it(run, log):
    log.say(ev.Watched(function=F.function))
    log.say(ev.Called(function=F.function, count=1))
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    assert one(run).status == PENDING
    log.say(ev.Called(function=F.function, count=2))
    assert one(run).status == WITHDRAWN


def test_nobody_can_say_when_the_run_has_ended(run, log):
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    log.end()
    assert one(run).status is None


def test_a_loss_is_no_counter_and_a_library_function_no_step(run, log):
    compiled(log, key(Leaf("n", "int", (), "int32", True)), [out("")])
    assert predictions(load(run)) == []


def test_a_numpy_state_that_comes_back_as_an_array_compiles_nothing(run, log):
    host = msgspec.structs.replace(
        W, type="numpy.ndarray", sharding=None, committed=None, memory_kind=None, layout=None
    )
    compiled(log, key(host, BATCH), [out("[0].w", 4), out("[1]")])
    assert predictions(load(run)) == []


def fed(log, run, arguments, *results):
    compiled(log, key(*arguments), results)
    return [p.argument for p in predictions(load(run))]


def test_a_learning_rate_is_not_fed_by_the_loss(log, run):
    rate = Leaf("rate", "float", (), "float32", True)
    assert fed(log, run, [BATCH, rate], out("")) == []


def test_a_python_number_is_fed_by_the_result_at_its_own_place(log, run):
    start = Leaf("total", "float", (), "float32", True)
    assert fed(log, run, [start, BATCH], out("[0]"), out("[1]")) == ["total"]


def test_integers_that_come_back_as_floats_are_no_state(log, run):
    images, labels = leaf("b.x", 4, dtype="uint8"), leaf("b.y", dtype="uint8")
    assert fed(log, run, [images, labels], out("['x']", 4), out("['y']")) == []


def test_a_trace_that_returned_nothing_has_not_the_results_of_an_earlier_one(run, log):
    compiled(log, key(W, WEAK, BATCH), RESULTS)
    compiled(log, key(W, STRONG, BATCH), [])
    loaded = load(run)
    first, second = loaded.compilations.values()
    assert [len(results_of(loaded, c).leaves) for c in (first, second)] == [3, 0]
