"""Which compilations are made once more: not a trace within another one, not the first programs of a transform."""

import io

import pytest
from handwritten_runs import Log, function, key, leaf, static

from jaxscope.log import store
from jaxscope.model import ledger
from jaxscope.model.causes import of, recompilations, recompiled, recompiles, traced_by
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report.text import print_report, summary
from jaxscope.rules import registry
from jaxscope.schema import events as ev

HEALTHY = """
import jax, jax.numpy as jnp

@jax.jit
def layer(w, x): return jnp.tanh(x @ w)

@jax.jit
def net(ws, x):
    for w in ws: x = layer(w, x)
    return x.sum()

ws = [jnp.ones((4, 8)), jnp.ones((8, 16)), jnp.ones((16, 2))]
for _ in range(3): net(ws, jnp.ones((3, 4)))

@jax.jit
def loss(w): return (w ** 2).sum()

for _ in range(4): jax.grad(loss)(jnp.ones(2))

@jax.jit
def model(p, x): return jnp.tanh(x @ p["w"]) + p["b"]

p, x = {"w": jnp.ones((3, 3)), "b": jnp.zeros(3)}, jnp.ones((5, 3))
for _ in range(3): jax.value_and_grad(lambda p, x: (model(p, model(p, x)) ** 2).mean())(p, x)
jax.vmap(lambda v: model(p, v))(x)
jax.hessian(lambda v: model(p, v).sum())(x[0])

@jax.jit
def energy(x): return (x ** 2).sum()

for _ in range(3): energy(jnp.ones(3)); jax.grad(energy)(jnp.ones(3))
jax.vmap(jax.grad(energy))(jnp.ones((4, 3)))
for g, shape in ((jax.grad(energy), (5,)), (jax.vmap(energy), (4, 5))): g(jnp.ones(shape))

@jax.jit
def serve(x): return jnp.cumsum(x)

ready = {n: serve.lower(jax.ShapeDtypeStruct((n,), "float32")).compile() for n in (8, 16)}
for n in (8, 16, 8): ready[n](jnp.ones(n))

@jax.jit
def looked_at(x): return jnp.cumsum(x) * 2

looked_at.eval_shape(jnp.ones(3))
print(looked_at.lower(jnp.ones(3)).as_text()[:1], looked_at(jnp.ones(3)))
"""

AGAIN = """
import jax, jax.numpy as jnp

@jax.jit
def loss(w, x): return ((x @ w) ** 2).sum()

@jax.jit
def total(x): return (x ** 2).sum()

@jax.jit
def inner(x): return x * 2

@jax.jit
def outer(x): return inner(x).sum()

def train(n): return jax.value_and_grad(loss)(jnp.ones(4), jnp.ones((n, 4)))

for n in (8, 8, 7, 6):
    train(n)
    jax.vmap(total)(jnp.ones((n, 4)))
    outer(jnp.ones(n))
"""


def names(model):
    return {
        f.name: [of(model, c)[0] for c in recompilations(f, model)]
        for f in model.functions.values()
        if f.user
    }


@pytest.mark.capture
@pytest.mark.costly
def test_healthy_programs_have_no_recompiles_and_nothing_to_find_about_them(record):
    model = load(record(HEALTHY).run)
    assert not any(names(model).values()), names(model)
    assert not [words.title(f) for f in registry.findings(model) if registry.rules()[f.code].recompiles]
    [layer] = [f for f in model.functions.values() if f.name == "layer"]
    assert [(c.reached, c.missed.entry) for c in layer.compilations] == [(["traced"], "nested")] * 3
    assert [of(model, c)[0].kind for c in layer.compilations] == ["first", "shape", "shape"], (
        "it is still told"
    )
    kinds = {of(model, c)[0].kind for f in model.functions.values() if f.user for c in f.compilations}
    assert kinds == {"first", "shape", "transform", "aot"}
    [looked_at] = [f for f in model.functions.values() if f.name == "looked_at"]
    phases = [c.reached_phases for c in looked_at.compilations]
    assert sum(phases) == 7, "a call after eval_shape and lower does what is left, and nothing twice"
    assert not any(recompiled(model, c) for c in looked_at.compilations)


@pytest.mark.capture
def test_a_transform_of_other_shapes_from_the_same_line_is_a_recompile_and_so_is_the_outer_function(record):
    model = load(record(AGAIN).run)
    told = names(model)
    assert told["inner"] == []
    assert [(c.kind, c.path) for c in told["outer"]] == [("shape", "x")] * 2
    assert [(c.kind, c.path) for c in told["total"]] == [("shape", "x")] * 2
    assert {(c.kind, c.path) for c in told["loss"]} == {("shape", "x")}
    for f in model.functions.values():
        assert [c for c in f.compilations if recompiled(model, c)] == recompilations(f, model)


@pytest.fixture
def log(tmp_path):
    return Log(store.create(tmp_path / "run"))


F = function("f")


def entries(log, *given):
    log.say(F)
    for n, entry in given:
        log.compiled(F, key(leaf("x", n)), entry=entry)
    run = load(log.run)
    [f] = run.functions.values()
    again = recompilations(f, run)
    assert again == [c for c in f.compilations if recompiled(run, c)]
    return [c.call for c in again]


def test_what_was_requested_is_no_recompile_and_a_call_that_does_not_use_it_is(log):
    assert entries(log, (8, "aot"), (16, "aot"), (8, "call"), (16, "aot")) == [3]


def test_the_first_call_after_a_nested_trace_is_no_recompile(log):
    assert entries(log, (8, "nested"), (16, "nested"), (8, "call"), (9, "call")) == [4]


def test_under_a_transform_only_other_arguments_are_a_recompile(log):
    assert entries(log, (8, "call"), (8, "transform"), (8, "transform"), (9, "transform"), (8, "call")) == [
        4,
        5,
    ]


def test_what_a_transform_compiles_of_a_trace_has_the_cause_of_the_trace(log):
    log.say(F)
    for serial in (1, 2, 3):
        traced = log.missed(
            F,
            key(leaf("x", 8), static=[static("vf", "f", compares="identity", serial=serial, hash=None)]),
            entry="transform",
        )
        log.phase(traced, "trace", 0.01)
        for path in ("x", "args[0]"):  # forward and backward: their keys have no static arguments
            call = log.missed(F, key(leaf(path, 8)), entry="transform")
            log.phase(call, "lower", 0.1)
            log.phase(call, "compile", 1.0)
    run = load(log.run)
    [f] = run.functions.values()
    assert recompilations(f, run) == [c for c in f.compilations if recompiled(run, c)] == f.compilations[3:]
    assert {(c.path, c.kind) for c in (of(run, c)[0] for c in f.compilations[3:])} == {
        ("vf", "static_identity")
    }
    [finding] = [x for x in registry.findings(run) if x.code == "JX108"]
    assert words.title(finding).startswith("f recompiled 2 times") and round(finding.seconds, 1) == 4.4
    assert "compared with" not in words.title(finding), "programs of the call before are no calls between"
    assert [c.call for c in recompiles(f, run)] == [4, 7]
    assert {e.cause: e.count for e in ledger.entries(run)}["static_identity"] == 2
    print_report(run, file=(out := io.StringIO()))
    assert "spent recompiling (2 new static objects)" in out.getvalue()
    assert "2x #4…#9" in out.getvalue()
    assert "6 compilations of your functions (2 recompiles)" in " ".join(summary(log.run).split())


def test_programs_compiled_for_an_earlier_trace_are_calls_of_their_own(log):
    log.say(F)
    log.phase(log.missed(F, key(leaf("x", 8)), entry="transform"), "trace", 0.01)
    for committed in (False, True):
        call = log.missed(F, key(leaf("x", 8, committed=committed)), entry="transform")
        log.phase(call, "lower", 0.1)
        log.phase(call, "compile", 1.0)
    run = load(log.run)
    [f] = run.functions.values()
    assert traced_by(f, run) == {f.compilations[1].id: f.compilations[0].id}
    assert [c.call for c in recompiles(f, run)] == [3]


def test_a_call_that_fails_while_it_is_traced_makes_nothing_again(tmp_path):
    log, step = Log(store.create(tmp_path / "run")), function("step")
    log.say(step)
    log.compiled(step, key(leaf("x", 4, 8)))
    call = log.missed(step, key(leaf("x", 4, 7)))
    log.say(ev.PhaseFailed(call=call, phase="trace"))
    log.compiled(step, key(leaf("x", 4, 9)))
    run = load(log.run)
    [f] = run.functions.values()
    assert recompilations(f, run) == f.compilations[2:]
    assert [recompiled(run, c) for c in f.compilations] == [False, True, True], "it is news all the same"


STEP, OTHER = 30, 31  # two lines that call a function


def objects(log, *calls):
    """Return the numbers of the recompiles among calls of ``f``, each given as (line, function object, size)."""
    for line, made, size in calls:
        log.compiled(F, key(leaf("x", size), function_object=made), line=line)
    log.end()
    run = load(log.run)
    [f] = run.functions.values()
    again = recompilations(f, run)
    return [c.call for c in again]


def test_two_objects_of_one_factory_that_two_lines_call_are_two_functions(log):
    log.say(F)
    assert objects(log, (STEP, 1, 8), (OTHER, 2, 8), (STEP, 1, 9), (OTHER, 2, 9)) == [3, 4]


def test_an_object_that_one_line_creates_again_is_a_recompile(log):
    log.say(F)
    assert objects(log, (STEP, 1, 8), (OTHER, 2, 8), (OTHER, 3, 8)) == [2, 3]


def test_the_head_of_the_report_and_the_findings_agree_about_two_objects(log):
    log.say(F)
    assert objects(log, (STEP, 1, 8), (OTHER, 2, 8)) == []
    run = load(log.run)
    assert not [f for f in registry.findings(run) if f.code == "JX110"]
    print_report(run, file=(out := io.StringIO()))
    assert "recompil" not in out.getvalue()
    assert "recompil" not in summary(log.run)


@pytest.mark.parametrize(("results", "again"), [((4, 4), [2]), ((4, 5), [])])
def test_an_object_with_other_results_for_equal_inputs_is_another_function(log, results, again):
    log.say(F)
    for made, size in enumerate(results, 1):
        call = log.missed(F, key(leaf("x", 8), function_object=made), line=STEP)
        log.phase(call, "trace", 0.1, out=[ev.OutLeaf("", (size,), "float32")])
        log.phase(call, "lower", 0.1)
        log.phase(call, "compile", 0.1)
    assert objects(log) == again


def test_two_states_with_functions_of_their_own_that_two_lines_pass_are_two_programs(log):
    log.say(F)
    for line, number in ((STEP, 1), (OTHER, 2), (STEP, 3)):
        apply = static("state.apply_fn", "Module.apply", type="function", compares="identity", serial=number)
        log.compiled(F, key(leaf("x", 8), static=[apply]), line=line)
        if number == 2:
            run = load(log.run)
            assert recompilations(run.functions[F.function], run) == []
    assert objects(log) == [2, 3]


@pytest.mark.parametrize(
    ("second", "again"),
    [
        (key(leaf("x", 8), function_object=2), True),  # the same program for a new object
        (key(leaf("x", 16), function_object=1), False),  # another size, on purpose
        (key(leaf("x", 16), function_object=2), False),
    ],
)
def test_a_program_compiled_ahead_of_time_for_a_new_object_is_compiled_again(tmp_path, second, again):
    step, log = function("step"), Log(store.create(tmp_path / "run"))
    log.say(step)
    log.compiled(step, key(leaf("x", 8), function_object=1), entry="aot")
    log.compiled(step, second, entry="aot")
    log.end()
    run = load(log.run)
    [f] = run.functions.values()
    assert recompilations(f, run) == (f.compilations[1:] if again else [])
    assert ("1 recompile" in " ".join(summary(log.run).split())) is again
