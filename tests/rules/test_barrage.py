"""Many small compilations outside jit: of which line they are, and what is not small."""

import io

import pytest
from written import CWD, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report.text import print_report, summary
from jaxscope.rules.registry import findings
from jaxscope.schema.keys import Frame, Static

ADD = function("add", None, None, eager=True, form="primitive")
LOOP = function("_fori_collect_loop", "/lib/numpyro/util.py", 9, library=True)


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def barrage(run):
    return [f for f in findings(load(run)) if f.code == "JX133"]


def test_what_takes_long_is_none_of_the_small_ones(run):
    log = Log(run)
    log.say(ADD)
    log.say(LOOP)
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.01), line=12)
    log.compiled(LOOP, key(leaf("x", 1)), (0.0, 0.0, 6.0), line=12)
    log.end()
    [f] = barrage(run)
    assert words.title(f) == "25 small compilations come from one line outside jit (add)"
    assert f.seconds == pytest.approx(0.25)


def test_twenty_that_take_long_are_no_barrage(run):
    log = Log(run)
    log.say(LOOP)
    for n in range(25):
        log.compiled(LOOP, key(leaf("x", n)), (0.0, 0.0, 6.0), line=12)
    log.end()
    assert barrage(run) == []


def test_lines_that_a_library_calls_count_for_the_line_that_called_the_library(run):
    log = Log(run)
    log.say(ADD)
    main = Frame(f"{CWD}/train.py", 31, "main")
    for n in range(25):
        where = {"line": 8 + n % 3, "stack": [main], "into_library": 1, "library": "haiku"}
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.01), **where)
    log.end()
    [f] = barrage(run)
    assert (f.source.line, f.evidence[0].source.line) == (31, 8)
    assert "jax.jit(net.init)" in words.fix_text(f)


def of_library(run, library, sizes):
    log = Log(run)
    for name in ("add", "mul", "exp", "sin", "cos"):
        op = function(name, None, None, eager=True, form="primitive")
        log.say(op)
        for n in sizes:
            log.compiled(op, key(leaf("x", n, 2)), (0.0, 0.0, 0.01), line=8, into_library=0, library=library)
    log.end()
    return [words.fix_text(f) for f in barrage(run)]


def test_a_sampler_whose_data_grow_is_not_to_be_jitted_but_given_one_size(run):
    [fix] = of_library(run, "numpyro", range(50, 90, 10))
    assert "pad the data" in fix and "jit" not in fix


def test_a_sampler_that_compiles_what_it_needs_once_has_no_advice(run):
    log = Log(run)
    for n in range(25):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        log.compiled(op, key(leaf("x", 50)), (0.0, 0.0, 0.01), line=8, into_library=0, library="numpyro")
    log.end()
    assert barrage(run) == []


def test_a_package_that_may_only_read_arrays_is_to_be_given_numpys(run):
    [fix] = of_library(run, "matplotlib", range(50, 90, 10))
    assert fix.startswith("pass NumPy arrays (np.asarray(x)) to matplotlib")


def test_a_log_that_does_not_say_where_a_library_was_called_has_the_innermost_line(run):
    log = Log(run)
    log.say(ADD)
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.01), line=8)
    log.end()
    [f] = barrage(run)
    assert f.source.line == 8 and "around this line" in words.fix_text(f)


def test_the_costliest_recompile_inside_a_library_is_named_with_its_cause(run):
    log = Log(run)
    log.say(LOOP)
    for spent, body in ((6.2, 1), (10.6, 2), (3.9, 3)):
        made = Static("_body_fn", "<function _body_fn>", "function", compares="identity", serial=body)
        log.compiled(LOOP, key(leaf("x", 1), static=[made]), (0.0, 0.0, spent), line=12)
    log.end()
    to = io.StringIO()
    print_report(load(run), file=to)
    for said in (" ".join(to.getvalue().split()), " ".join(summary(run).split())):
        assert (
            "costliest recompile outside your functions: _fori_collect_loop #2 the static value _body_fn is a new object"
            in said
        )
        assert "1 more took 1 s or longer" in said
