"""What is said of static values that differ: advice that can be followed, and how serious it is."""

from __future__ import annotations

import hashlib

import pytest
from handwritten_runs import Log, function, key, leaf, static

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.events import SourceSeen
from jaxscope.schema.findings import NOTE, WARNING
from jaxscope.schema.keys import Frame, Static

STEP = function("step")
FILTERED = function("step", wrappers=["equinox.filter_jit"])


@pytest.fixture
def found(tmp_path):
    """``found(key, key, ...)``: the findings about recompiles after calls with these keys, by code."""

    def make(*keys, seen=STEP):
        log = Log(store.create(tmp_path / "run"))
        log.say(seen)
        for k in keys:
            log.compiled(seen, k, (0.1, 0.1, 0.1))
        return {f.code: f for f in registry.findings(load(log.run))}

    return make


def values(path, *given):
    return [key(leaf("x", 4), static=[static(path, v)]) for v in given]


def test_a_rate_that_changes_is_a_warning_and_becomes_an_ordinary_argument(found):
    f = found(*values("lr", 0.1, 0.05, 0.02))["JX107"]
    assert f.severity == WARNING
    assert (
        words.fix_text(f)
        == "remove lr from static_argnums/static_argnames, so that it becomes an ordinary argument"
    )


def test_through_filter_jit_there_are_no_static_argnums_to_take_it_out_of(found):
    f = found(*values("lr", 0.1, 0.05, 0.02), seen=FILTERED)["JX107"]
    assert (
        words.fix_text(f)
        == "pass jnp.asarray(lr) instead of lr, because every Python number is static under equinox.filter_jit"
    )


def test_a_size_has_to_stay_static_and_a_few_of_them_are_a_note(found):
    few = found(*values("n", 4, 8, 16))["JX107"]
    assert few.severity == NOTE and words.fix_text(few).startswith(
        "if n is only used in computations, remove n from"
    )


def test_which_earlier_call_a_value_is_compared_with_is_reported_where_it_is_not_the_latest(found):
    a, b, c = (
        key(leaf("x", n), static=[static("n", value)])
        for n, value in ((4, "fold1"), (8, "fold2"), (4, "fold3"))
    )
    titles = [words.title(f) for f in found(a, b, c).values()]
    assert any(
        t.endswith("from 'fold1' to 'fold3' (compared with compilation #1, the most similar earlier one)")
        for t in titles
    )
    assert not any("to f32[8] (" in t for t in titles)


def test_a_size_of_many_values_is_no_mode(found):
    assert found(*values("n", *range(6)))["JX107"].severity == WARNING


def test_a_name_cannot_be_an_array(found):
    f = found(*values("mode", "fold0", "fold1", "fold2"))["JX107"]
    assert f.severity == NOTE and "ordinary argument" not in words.fix_text(f)


def configs(*fields):
    return [key(leaf("x", 4), static=[Static("cfg", text, "Config", "value")]) for text in fields]


@pytest.mark.parametrize(
    ("texts", "silent"),
    [
        (("Config(loss='a', n=64)", "Config(loss='b', n=64)", "Config(loss='c', n=64)"), True),
        (
            ("Config(loss='a', bias=None)", "Config(loss='b', bias=True)", "Config(loss='c', bias=False)"),
            True,
        ),
        (("<Loss.MSE: 'mse'>", "<Loss.MAE: 'mae'>", "<Loss.HUBER: 'huber'>"), True),
        (("Config(loss='a', n=64)", "Config(loss='b', n=64)", "Config(loss='c', n=32)"), False),
        (("Config(loss='a...", "Config(loss='b...", "Config(loss='c..."), False),
        (("Config('a')", "Config('b')", "Config('c')"), False),
        (tuple(f"Config(loss='{name}')" for name in "abcdef"), False),
    ],
)
def test_an_object_in_which_only_names_change_is_a_mode(found, texts, silent):
    assert ("JX107" not in found(*configs(*texts))) == silent


@pytest.mark.parametrize("both", [("sum", "mean"), (False, True)])
def test_a_mode_with_a_program_for_each_of_two_values_is_no_finding(found, both):
    assert "JX107" not in found(*values("mode", *both))


def in_tree(path, *given):
    return [
        key(leaf("m.w", 4), nodes={"m": "M"}, tree="M(*)", static=[static(path, v)])
        for v in given
    ]  # fmt: skip


def test_a_flag_of_a_module_is_switched_on_purpose(found):
    nnx = function("step", wrappers=["flax.nnx.jit"])
    assert "JX109" not in found(*in_tree("m.bn.use_running_average", False, True), seen=nnx)


def test_a_number_of_a_module_is_held_as_an_array_only_where_python_does_not_ask_for_it(found):
    f = found(*in_tree("m.do.rate", 0.3, 0.1))["JX109"]
    assert f.severity == WARNING and words.fix_text(f).startswith(
        "if m.do.rate is only used in computations, store it as an array"
    )
    assert "If an if statement or a shape depends on it, keep it the same" in words.fix_text(f)


def test_a_partial_is_made_once_as_it_cannot_be_given_an_eq(found):
    def call(n):
        return key(
            static=[
                static("act", "functools.partial(f)", type="functools.partial", compares="parts", serial=n)
            ]
        )

    f = found(call(1), call(2), call(3))["JX108"]
    assert words.fix_text(f).startswith(
        "create the partial act once, outside the loop"
    ) and "__eq__" not in words.fix_text(f)


def test_what_a_partial_binds_is_not_new_where_it_takes_the_place_of_a_lambda(found):
    before = key(static=[static("act", "<lambda>", type="function", compares="identity", serial=1)])
    after = key(
        static=[
            static("act", "functools.partial(f, s=1)", type="functools.partial", compares="parts", serial=2),
            static("act.keywords['s']", 1),
        ]
    )
    third = key(static=[static("act", "relu", type="function", compares="identity", serial=3)])
    assert found(before, after, third)["JX107"].path == "act"


def test_each_cause_that_is_enough_by_itself_is_named_so_that_all_are_mended(found):
    f = found(key(leaf("a", 3), leaf("b", 3)), key(leaf("a", 3, dtype="bfloat16"), leaf("b", 4)))["JX101"]
    assert f.path == "b" and words.fix_text(f).endswith("(a also changed dtype in this recompile)")


def test_what_compiles_nothing_by_itself_is_no_cause_beside_one_that_does(tmp_path):
    from jaxscope.model import causes

    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    log.compiled(STEP, key(leaf("x", 4), leaf("w", 4)))
    log.compiled(STEP, key(leaf("x", 5), leaf("w", 4, type="numpy.ndarray", sharding=None, committed=None)))
    model = load(log.run)
    told = causes.of(model, list(model.compilations.values())[-1])
    assert [(c.kind, c.path) for c in told] == [("shape", "x")]


def test_recompiles_of_one_cause_are_one_finding_without_another_about_their_rate(found):
    codes = found(*values("lr", *(0.1 / n for n in range(1, 14))))
    advice = "remove lr from static_argnums/static_argnames, so that it becomes an ordinary argument"
    assert "JX132" not in codes and words.fix_text(codes["JX107"]) == advice


REAL = """
import functools, jax, jax.numpy as jnp, equinox as eqx

class Cfg:
    def __init__(self, k): self.k = k

@functools.partial(jax.jit, static_argnames="cfg")
def alternating(x, cfg): return x * cfg.k

for k in (1, 2, 1, 2, 1): alternating(jnp.ones(3), Cfg(k))

@eqx.filter_jit
def update(w, lr): return w - lr * w

for i in range(4): update(jnp.ones(3), 0.1 / (i + 1))

@functools.partial(jax.jit, static_argnames="n")
def filled(x, n): return jnp.zeros(n).at[:1].set(x)

for n in (4, 8, 16): filled(1.0, n=n)
"""


@pytest.mark.capture
def test_findings_about_static_values_of_real_programs(record):
    model = load(record(REAL).run)
    told = {(model.functions[f.function].name, f.code): f for f in registry.findings(model)}
    again = told["alternating", "JX108"]
    assert "4 times" not in words.title(again) and "3 times" in words.title(again), (
        "all but the first of each value"
    )
    assert told["update", "JX107"].severity == WARNING and "jnp.asarray(lr)" in words.fix_text(
        told["update", "JX107"]
    )
    assert told["filled", "JX107"].severity == NOTE and "stay static" in words.fix_text(
        told["filled", "JX107"]
    )


@pytest.mark.parametrize(
    ("lines", "functions", "known"), [((30, 31), 2, False), ((30, 30), 2, False), ((30, 30), 3, True)]
)
def test_two_functions_need_a_program_each(tmp_path, lines, functions, known):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for n, line in enumerate((*lines, *lines)):
        k = n % functions
        text = f"<function density{k} at /home/ann/work/projects/a_long_name/advi.py:{90 + k}>"
        func = static("func", 0, repr=text, type="function", compares="identity", serial=k, hash=k)
        log.compiled(STEP, key(leaf("x", 4), static=[func]), (0.1, 0.1, 0.1), line=line)
    found = [f for f in registry.findings(load(log.run)) if f.code == "JX107"]
    assert bool(found) is known
    for f in found:
        assert "'func' changed from density1 (advi.py:91) to density2 (advi.py:92)" in words.title(f)


@pytest.mark.parametrize("recorded", [True, False], ids=["as data", "as text in an older log"])
def test_the_variables_that_a_new_function_captures_are_to_be_passed(tmp_path, recorded):
    program = tmp_path / "my: train.py"
    program.write_text(
        text := "def main(x):\n    for rate in (1.0, 2.0):\n        step(lambda v: v * rate, x)\n"
    )
    log = Log(store.create(tmp_path / "run"))
    log.say(SourceSeen(file=str(program), sha256=hashlib.sha256(text.encode()).hexdigest()))
    log.say(STEP)
    line = Frame(str(program), 3, "main.<locals>.<lambda>")
    shown = "<function main.<locals>.<lambda>>" if recorded else f"<function f at {program}:3>"
    for n in range(4):
        func = Static("func", shown, "function", "identity", n, n, defined=line if recorded else None)
        log.compiled(STEP, key(leaf("x", 4), static=[func]), site=line)
    [f] = [f for f in registry.findings(load(log.run)) if f.code == "JX108"]
    assert words.fix_text(f).startswith("define the function for func once") and "rate" in words.fix_text(f)


def test_the_lines_that_clear_the_caches_are_named(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        text := "for x in data:\n    step(x)\n    jax.clear_caches()\n    step.clear_cache()\n"
    )
    log = Log(store.create(tmp_path / "cleared"))
    log.say(SourceSeen(file=str(program), sha256=hashlib.sha256(text.encode()).hexdigest()))
    log.say(STEP)
    for cleared in (0, 1):
        log.compiled(STEP, key(leaf("x", 4)), site=Frame(str(program), 2, "<module>"), cleared=cleared)
    [f] = [f for f in registry.findings(load(log.run)) if f.code == "JX112"]
    assert words.fix_text(f).startswith("do not clear the caches (at train.py:3 and train.py:4) while")


VARIOUS = """
import functools
import jax, jax.numpy as jnp, jaxscope

@functools.partial(jax.jit, static_argnums=1)
def total(x, scale):
    return x.sum() * scale

watched = jaxscope.watch(total) if WATCH else total
for n in range(1, 5):
    watched(jnp.ones(n), n)
    watched(jnp.ones(n), n + 1)
    watched(jnp.ones(n, int), n)
    watched(jnp.ones(n, "bfloat16"), n)
for _ in range(CALLS):
    watched(jnp.ones(4, "bfloat16"), 4)
"""


@pytest.mark.capture
@pytest.mark.parametrize(
    ("watch", "calls", "rate"),
    [
        (False, 100, {"n": 15}),
        (True, 0, {"n": 15, "window": 16, "function": "total"}),
        (True, 100, None),  # none of the last 50 calls recompiled
    ],
)
def test_recompiles_with_various_causes_are_judged_by_the_last_calls_if_calls_are_counted(
    record, watch, calls, rate
):
    run = load(record(VARIOUS.replace("WATCH", str(watch)).replace("CALLS", str(calls))).run)
    rates = [f.title.fields["rate"].fields for f in registry.findings(run) if f.code == "JX132"]
    assert rates == [rate] * (rate is not None)
