"""Seconds by cause, function and line; sizes to pad to."""

import pytest
from written import CWD, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import ledger, sizes
from jaxscope.model.load import load

F = function("step")


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def test_each_cause_is_an_entry_by_function_and_line_and_eager_operations_are_folded_by_line(run):
    log = Log(run)
    add, mul = (function(n, None, None, eager=True) for n in ("add", "mul"))
    for f in (F, add, mul):
        log.say(f)
    log.compiled(F, key(leaf("x", 1)), (0.5, 0.1, 1.0), line=7)
    for n in (2, 3):
        log.compiled(F, key(leaf("x", n)), (0.5, 0.1, 1.0), line=7)
    log.compiled(F, key(leaf("x", 3, dtype="int32")), (0.5, 0.1, 1.0), line=9)
    for f in (add, mul):
        log.compiled(f, key(leaf("x", 4)), (0.0, 0.0, 0.1), line=3)
    log.missed(F, key(leaf("x", 3, type="numpy.ndarray")))  # compiled nothing: not in the ledger
    found = [
        (
            e.cause,
            e.path,
            e.function.name if e.function else None,
            e.source.line,
            e.count,
            round(e.seconds, 3),
        )
        for e in ledger.entries(load(run))
    ]
    assert found == [
        ("shape", "x", "step", 7, 2, 3.2),
        ("dtype", "x", "step", 9, 1, 1.6),
        ("first", None, "step", 7, 1, 1.6),
        ("first", None, None, 3, 2, 0.2),
    ]


def test_sizes_are_offered_for_an_axis_that_took_several(run):
    log = Log(run)
    log.say(F)
    for n in (32, 31, 17, 32, 5):
        log.compiled(F, key(leaf("w", 8, 8), leaf("batch['x']", n, 4), leaf("batch['y']", n)))
    [v] = sizes.varying(load(run))
    assert (v.path, v.axis, v.observed) == ("batch", 0, {5: 1, 17: 1, 31: 1, 32: 2})
    assert [c.sizes for c in v.choices][:2] == [[32], [5, 32]] or v.choices[1].sizes == [17, 32]


def test_two_sizes_leave_nothing_to_choose(run):
    log = Log(run)
    log.say(F)
    for n in (32, 31):
        log.compiled(F, key(leaf("x", n)))
    assert sizes.varying(load(run)) == []


def test_the_line_that_makes_a_partial_anew_is_named_where_the_source_is_at_hand(run, tmp_path):
    source = tmp_path / "train.py"
    source.write_text(
        "import functools, jax\nfor _ in range(3):\n    g = jax.jit(functools.partial(step, 2))\n    g(x)\n"
    )
    log = Log(run)
    f = function("step", str(source), 1, form="partial", wrappers=["functools.partial"])
    log.say(f)
    from jaxscope.model import causes
    from jaxscope.schema.keys import Frame

    for serial in (1, 2):
        log.compiled(f, key(leaf("x"), function_object=serial), site=Frame(str(source), 4, "<module>"))
    run_ = load(run)
    last = list(run_.compilations.values())[-1]
    [c] = causes.of(run_, last)
    assert (c.kind, c.text.endswith("made anew at train.py:3")) == ("new_function", True)
    assert CWD not in c.text
