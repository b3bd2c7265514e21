"""Seconds by cause, function and line; sizes to pad to."""

import io

import pytest
from handwritten_runs import CWD, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import ledger, observed_sizes
from jaxscope.model.load import load
from jaxscope.present.causes import clause
from jaxscope.report.text import print_report
from jaxscope.schema import events as ev

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
    [v] = observed_sizes.varying(load(run))
    assert (v.path, v.axis, v.observed) == ("batch", 0, {5: 1, 17: 1, 31: 1, 32: 2})
    assert [c.sizes for c in v.choices][:2] == [[32], [5, 32]] or v.choices[1].sizes == [17, 32]


def test_two_sizes_leave_nothing_to_choose(run):
    log = Log(run)
    log.say(F)
    for n in (32, 31):
        log.compiled(F, key(leaf("x", n)))
    assert observed_sizes.varying(load(run)) == []


def test_the_line_that_makes_a_partial_anew_is_named_where_the_source_is_at_hand(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the project: of files outside of it only what was recorded is read
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
    assert (c.kind, clause(c).endswith("created again, probably at train.py:3")) == ("new_function", True)
    assert CWD not in clause(c)


def numpy(path, *shape):
    return leaf(path, *shape, type="numpy.ndarray", sharding=None, committed=None)


def watched(log, sizes_seen, brought):
    log.say(F)
    log.say(ev.Watched(function=F.function, step=True))
    for n in sizes_seen:
        call = log.missed(F, key(numpy("x", 4, n)))
        for phase in ("trace", "lower"):
            log.phase(call, phase, 0.1)
        log.phase(call, "compile", 0.1, program=f"p{n}", devices="0")
    for size, n in brought.items():
        log.say(ev.Brought(function=F.function, bytes=size, count=n))
    log.say(ev.Called(function=F.function, count=sum(brought.values())))


def test_sizes_count_as_often_as_calls_had_them_where_what_calls_brought_tells_it(run):
    watched(Log(run), (10, 100, 20, 90), {160: 500, 1600: 2, 320: 10, 1440: 1})
    [v] = observed_sizes.varying(load(run))
    assert (v.observed, v.calls) == ({10: 500, 20: 10, 90: 1, 100: 2}, 513)
    padded = 513 * 100
    assert v.choices[0].padding_share == (padded - (5000 + 200 + 90 + 200)) / padded
    assert v.choices[1].sizes == [10, 100]


@pytest.mark.parametrize(
    "brought", [{160: 500, 1600: 2, 320: 10, 999: 1}, {}], ids=["a size nobody knows", "nothing told"]
)
def test_where_the_calls_of_a_size_are_not_known_each_compilation_counts_once(run, brought):
    watched(Log(run), (10, 100, 20, 90), brought)
    [v] = observed_sizes.varying(load(run))
    assert (v.observed, v.calls) == ({10: 1, 20: 1, 90: 1, 100: 1}, None)


def test_padding_of_several_axes_is_reported_together(run):
    log = Log(run)
    log.say(F)
    for n in (20, 30, 40, 50):
        log.compiled(F, key(leaf("x", n, n)))
    read = load(run)
    axes = observed_sizes.varying(read)
    one, *_, all_sizes = observed_sizes.joint(axes)
    held = sum(n * n for n in (20, 30, 40, 50))
    assert (one.sizes, one.compilations) == ([[50], [50]], 1)
    assert one.padding_share == (4 * 2500 - held) / (4 * 2500)
    assert (all_sizes.compilations, all_sizes.padding_share) == (4, 0.0)
    to = io.StringIO()
    print_report(read, file=to)
    said = " ".join(to.getvalue().split())
    assert "axes 0 and 1 of x in step: 4 sizes from 20 to 50 each" in said
    assert "1 compilation 46% padding 50 x 50" in said and said.count("Sizes to pad to axes") == 1
    assert "each compilation counts as one" in said
