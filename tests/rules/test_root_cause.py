"""An odd batch is one finding, whatever it passes through."""

import pytest
from handwritten_runs import Log, function, key, leaf, static

from jaxscope.check import budgets, gate
from jaxscope.check.limits import Limits
from jaxscope.check.plan import Plan
from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.model.run import Run
from jaxscope.present import findings as words
from jaxscope.rules import loop_time, registry
from jaxscope.schema import events as ev
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame, OutLeaf

STEP = function("train_step")
STAGE = function("stage", line=30)
EVAL = function("eval_step", line=60)
ADD = function("add", None, None, eager=True, form="primitive")
SLICE = function("dynamic_slice", None, None, eager=True, form="primitive")


def x(*shape, path="x"):
    return key(leaf(path, *shape))


@pytest.fixture
def log(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    for f in (STEP, STAGE, EVAL, ADD, SLICE):
        log.say(f)
    log.say(ev.Watched(function=STEP.function, step=True))
    return log


def sliced(log, rows, step, line=20):
    """An eager slice: the array it takes is always the same, its result is not."""
    k = key(leaf("args[0]", 1000, 32), tree=f"PyTreeDef({rows})")
    call = log.missed(SLICE, k, line, step)
    log.phase(call, "trace", 0.01, out=[OutLeaf("", (rows, 32), "float32")])
    log.phase(call, "compile", 0.01)


def epoch(log, rows, step, first=0.0):
    log.compiled(STAGE, x(rows, 32, path="raw"), (0.1, 0.1, first + 0.1), step=step - 1, line=21)
    log.compiled(ADD, x(rows, 32), (0.1, 0.1, 9.0), step=step - 1, line=22)
    log.compiled(STEP, x(rows, 32, path="batch"), (0.1, 0.1, 1.0), step=step, line=23)


def found(log, n=2, **more):
    return gate.recompiles_after(load(log.run), n, **more)


def test_what_an_odd_batch_passes_through_is_one_finding_of_the_slowest_function(log):
    epoch(log, 64, 1)
    epoch(log, 40, 16)
    (f,) = found(log)
    assert words.title(f) == (
        "train_step was traced and compiled in step 16, but nothing may compile after step 2: batch changed from f32[64,32] to f32[40,32]; "
        "the same change also recompiled stage and an eager operation"
    )
    assert f.seconds == pytest.approx(0.3 + 9.2 + 1.2) and f.source.line == 23
    assert [(words.evidence(e), e.step) for e in f.evidence] == [
        ("stage#2: raw changed from f32[64,32] to f32[40,32]", 15),
        ("the eager operation add at train.py:22 at step 15", 15),
        ("train_step#2: batch changed from f32[64,32] to f32[40,32]", 16),
    ]
    assert words.fix_text(f).startswith(
        "drop the smaller batch"
    ) and "if operations outside jit use the batch" in words.fix_text(f)


def test_advice_says_nothing_of_eager_operations_where_there_are_none(log):
    for rows, step in ((64, 1), (40, 16)):
        log.compiled(STAGE, x(rows), step=step)
        log.compiled(STEP, x(rows), step=step)
    (f,) = found(log)
    assert "; the same change also recompiled " in words.title(f)
    assert "outside jit" not in words.fix_text(f)


def test_eager_operations_alone_are_one_finding_too(log):
    log.compiled(STEP, x(1), step=1)
    for rows, step in ((64, 1), (40, 16)):
        log.compiled(ADD, x(rows), step=step, line=20)
        log.compiled(ADD, x(rows, 32), step=step, line=21)
    (f,) = found(log)
    assert words.title(f).startswith("the eager operation add was") and words.title(f).endswith(
        "; the same change also recompiled an eager operation"
    )


def test_a_slice_whose_result_has_the_odd_size_belongs_to_it(log):
    for rows, step in ((64, 1), (40, 16)):
        sliced(log, rows, step - 1)
        log.compiled(STEP, x(rows, 32), step=step)
    (f,) = found(log)
    assert words.title(f).endswith("; the same change also recompiled an eager operation")
    assert words.evidence(f.evidence[0]) == "the eager operation dynamic_slice at train.py:20 at step 15"


def test_another_size_or_another_step_is_another_cause(log):
    epoch(log, 64, 1)
    log.compiled(STEP, x(40, 32, path="batch"), step=16)
    log.compiled(ADD, x(64, 7), step=16)  # 32 to 7: not the rows
    log.compiled(STAGE, x(40, 32, path="raw"), step=30)
    assert [words.title(f).partition(" was")[0] for f in found(log)] == [
        "train_step",
        "stage",
        "the eager operation add",
    ]


def test_a_static_value_of_the_users_that_follows_a_size_keeps_its_own_finding(log):
    from handwritten_runs import static

    for rows, step in ((64, 1), (40, 16)):
        log.compiled(STEP, x(rows), step=step)
        log.compiled(EVAL, key(leaf("x", rows), static=[static("n", rows)]), step=step)
    assert len(found(log)) == 2


def test_processes_have_caches_of_their_own(log):
    child = Log(log.run, pid=2000, how="child")
    for one, f in ((log, STEP), (child, EVAL)):
        one.say(f)
        one.say(ev.Watched(function=f.function, step=True))
        for rows, step in ((64, 1), (40, 16)):
            one.compiled(f, x(rows), step=step)
    assert len(found(log)) == 2


def test_compilations_that_are_too_many_for_the_same_cause_are_reported_with_it(log):
    epoch(log, 64, 1)
    epoch(log, 40, 16)
    late = gate.late_after(load(log.run), 2)
    allowed = Limits(compilations=2)
    assert budgets.findings(load(log.run), allowed, late=late) == []
    (f,) = budgets.with_counts(load(log.run), allowed, None, late)
    assert (
        words.evidence(f.evidence[-1])
        == "including these compilations, your functions were compiled 4 times, 2 allowed (JX191)"
    )
    own = {"train_step": Limits(compilations=1)}
    assert budgets.findings(load(log.run), Limits(), own, late=late) == []
    (f,) = budgets.with_counts(load(log.run), Limits(), own, late)
    assert (
        words.evidence(f.evidence[-1])
        == "including these compilations, train_step was compiled 2 times, 1 allowed (JX191)"
    )


def test_compilations_that_are_too_many_all_the_same_are_reported_by_themselves(log):
    epoch(log, 64, 1)
    epoch(log, 40, 16)
    run = load(log.run)
    late = gate.late_after(run, 2)
    (f,) = budgets.findings(run, Limits(compilations=1), late=late)
    assert f.code == "JX191"
    assert words.title(f) == (
        "your functions were compiled 4 times, 1 allowed; 2 of them were too late (JX190), the others not "
        "(stage once, train_step once); most recently stage: the first time this function is seen"
    )
    assert [
        words.evidence(e) for e in budgets.with_counts(run, Limits(compilations=1), None, late)[0].evidence
    ] == [words.evidence(e) for e in late[0].finding.evidence]


def test_a_finding_that_is_not_looked_at_takes_no_other_away(log):
    epoch(log, 64, 1)
    epoch(log, 40, 16)
    asked = {"no-recompiles-after": 2, "max-compilations": 2}
    told = {
        tuple(ignored): [f.code for f in Plan({**asked, "ignore": ignored}).check(load(log.run)).findings]
        for ignored in ([], ["JX190"], ["JX191"])
    }
    assert told == {(): ["JX190"], ("JX190",): ["JX191"], ("JX191",): ["JX190"]}


def test_too_many_compilations_come_with_the_advice_about_their_cause(log):
    epoch(log, 64, 1)
    epoch(log, 40, 16)
    (f,) = budgets.findings(load(log.run), Limits(compilations=3))
    assert words.fix_text(f) == (
        "drop the smaller batch, also from averages and counts; or pad raw to [64,32] like the other batches, and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values), or allow more compilations"
    )


def test_without_a_gate_functions_of_one_change_are_one_finding_where_steps_are_known(log):
    for rows, step in ((64, 1), (40, 16)):
        log.compiled(STAGE, x(rows), (0.1, 0.1, 0.1), step=step)
        log.compiled(STEP, x(rows), (1, 1, 1), step=step)
    (f,) = [f for f in registry.findings(load(log.run)) if f.code == "JX101"]
    assert words.title(f).startswith("train_step recompiled: ") and words.title(f).endswith(
        "; the same change also recompiled stage"
    )
    assert [words.evidence(e).partition(":")[0] for e in f.evidence] == [
        "#2",
        "stage#2",
    ]


def test_without_steps_two_loops_are_not_taken_for_one(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    for f in (STEP, EVAL):
        log.say(f)
        for rows in (64, 40):
            log.compiled(f, x(rows))
    told = [words.title(f).partition(" ")[0] for f in registry.findings(load(log.run)) if f.code == "JX101"]
    assert sorted(told) == ["eval_step", "train_step"]


LOOPS = """def main():
    for x in batches:
        loss(x)
        accuracy(x)
    for x in others:
        accuracy(x)
"""


@pytest.mark.parametrize(("line", "findings"), [(4, 1), (6, 2)])
def test_without_steps_what_one_loop_calls_with_an_odd_batch_is_one_finding(
    tmp_path, monkeypatch, line, findings
):
    (tmp_path / "train.py").write_text(LOOPS)
    monkeypatch.chdir(tmp_path)
    log = Log(store.create(tmp_path / "run"))
    for f, at in ((STEP, 3), (EVAL, line)):
        log.say(f)
        for rows in (64, 40):
            log.compiled(f, x(rows), site=Frame(str(tmp_path / "train.py"), at, "main"))
    told = [words.title(f) for f in registry.findings(load(log.run)) if f.code == "JX101"]
    assert len(told) == findings
    assert ("the same change also recompiled" in told[0]) == (findings == 1)


PROGRAM = """
import jax, jax.numpy as jnp, numpy as np, jaxscope

data = np.arange(1000 * 8.0, dtype="float32").reshape(1000, 8)
mask = np.ones(1000, "float32")

def stage(x):
    x = jnp.asarray(x)
    return (x - jnp.mean(x, axis=0)) * 0.1

@jax.jit
def train_step(w, x, mask):
    loss, g = jax.value_and_grad(lambda w: jnp.sum(((x @ w) ** 2) * mask) / mask.sum())(w)
    return w - 0.01 * g, loss

w = jnp.zeros(8)
ROWS = 1000
for epoch in range(2):
    for at in range(0, ROWS, 64):
        w, loss = train_step(w, stage(data[at : at + 64]), jnp.asarray(mask[at : at + 64]))
        jaxscope.step()
"""
DROPPED = PROGRAM.replace("ROWS = 1000", "ROWS = 1000 // 64 * 64")
PADDED = PROGRAM.replace(
    "ROWS = 1000", "ROWS = 1024; data = np.pad(data, ((0, 24), (0, 0))); mask = np.pad(mask, (0, 24))"
)


@pytest.mark.capture
@pytest.mark.long
def test_dropping_or_padding_the_last_batch_leaves_nothing(record):
    told = gate.recompiles_after(load(record(PROGRAM).run), 2)
    assert [f.code for f in told] == ["JX190"] and "train_step was" in words.title(told[0])
    assert "f32[40,8]" in words.title(told[0]) and "eager operations" in words.title(told[0])
    steps = [e.step for e in told[0].evidence]
    assert steps == sorted(steps) and steps
    assert gate.recompiles_after(load(record(DROPPED).run), 2) == []
    assert gate.recompiles_after(load(record(PADDED).run), 2) == []


SPREAD = [function(name, line=70 + 10 * n) for n, name in enumerate(("basis", "overlap", "energy"))]


def passed_on(tmp_path, after):
    """Three functions are called with a float32 array, then with ``after``: overlap, basis and energy."""
    log = Log(store.create(tmp_path / "run"))
    for f in SPREAD:
        log.say(f)
    for n, f in enumerate(SPREAD):
        log.compiled(f, key(leaf("x", 8)), (0.1, 0.1, 1.0), line=20 + n)
    for n in (1, 0, 2):
        log.compiled(SPREAD[n], key(after), (0.1, 0.1, 1.0), line=20 + n)
    log.end()
    return [f for f in registry.findings(load(log.run)) if f.code in ("JX102", "JX116")]


def test_functions_that_get_float64_one_after_another_are_one_finding_of_the_first(tmp_path):
    [f] = passed_on(tmp_path, leaf("x", 8, dtype="float64"))
    assert f.function == SPREAD[1].function and f.seconds == pytest.approx(3.6)
    assert words.title(f) == (
        "overlap recompiled: x changed from f32[8] to f64[8]; the same change also recompiled basis and energy"
    )
    assert words.fix_text(f).startswith("a result computed with a float64 array is also float64")


def test_dtypes_of_32_bits_need_not_have_one_cause(tmp_path):
    assert len(passed_on(tmp_path, leaf("x", 8, dtype="int32"))) == 3


def test_functions_with_static_objects_of_one_class_are_one_finding(tmp_path):
    """Each controller gets a copy of the model, so that each method of the model is compiled for each copy."""
    directory = store.create(tmp_path / "run")
    log = Log(directory)
    for name, seconds, module in (("slope", 1.0, "a"), ("energy", 3.0, "a"), ("other", 2.0, "b")):
        seen = function(name)
        log.say(seen)
        for serial in (1, 2, 3):
            of = static(
                "self", "<Model>", type=f"{module}.Model", compares="identity", serial=serial, hash=serial
            )
            log.compiled(seen, key(leaf("x", 3), static=[of]), (0.0, 0.0, seconds), line=12)
    log.end()
    found = [f for f in registry.findings(load(directory)) if f.code == "JX108"]
    titles = [words.title(f) for f in found]
    assert [f.seconds for f in found] == [8.0, 4.0]
    assert titles[0].startswith("energy recompiled 2 times") and titles[0].endswith("also recompiled slope")
    assert words.fix_text(found[0]).startswith("use one Model object for all calls")
    assert titles[1].startswith("other recompiled 2 times") and "also recompiled" not in titles[1]


@pytest.mark.parametrize(("compiling", "codes"), [(5.0, ["JX605"]), (6.0, ["JX605", "JX133"])])
def test_compilations_beside_a_much_longer_loop_need_no_advice(compiling, codes):
    """The advice about the array over which a line iterates is not about jit."""
    line = Frame("train.py", 12, "main")
    running = Finding("JX605", WARNING, LIKELY, "the loop", source=line, fix=Fix("jit", "jit"), seconds=20.0)
    compiled = Finding(
        "JX133", NOTE, CERTAIN, "the line", source=line, fix=Fix("copy", "numpy"), seconds=compiling
    )
    found = loop_time.with_time_to_run(Run(), [running, compiled])
    assert [f.code for f in found] == codes
    assert found[0].fix == running.fix
    assert found[0].seconds == (25.0 if len(codes) == 1 else 20.0)
