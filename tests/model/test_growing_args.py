"""Which arguments of another size are what the function itself made longer, on runs written by hand."""

from __future__ import annotations

import pytest
from handwritten_runs import ONE_CPU, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import causes, growing_args, observed_sizes
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.keys import Frame, OutLeaf

DECODE = function("decode")
CALL = Frame("/home/ann/work/train.py", 7, "generate")
ELSEWHERE = Frame("/home/ann/work/train.py", 3, "load")


@pytest.fixture
def log(tmp_path):
    made = Log(store.create(tmp_path / "run"))
    made.say(DECODE)
    return made


def decode(log, k, results, **more):
    call = log.missed(DECODE, k, site=CALL, **more)
    out = [OutLeaf(path, shape, "float32", False) for path, shape in results.items()]
    log.phase(call, "trace", 0.1, out=out)
    log.phase(call, "lower", 0.1)
    log.phase(
        call, "compile", 1.0, out_shardings=[ONE_CPU], out_sharding_of=[0] * len(out), out_committed=False
    )


def with_cache(n):
    return key(leaf("token", 4), leaf("cache['k']", n, 4), leaf("cache['v']", n, 4))


def returning(n, name="[1]"):
    return {"[0]": (4,), f"{name}['k']": (n, 4), f"{name}['v']": (n, 4)}


def told(log):
    """Of each recompile: is it the function's own doing?"""
    run = load(log.run)
    [f] = run.functions.values()
    return [growing_args.by_itself(run, c, causes.of(run, c)[0]) for c in f.compilations[1:]]


def advised(log):
    return [
        (f.code, words.fix_text(f)) for f in registry.findings(load(log.run)) if f.code in ("JX101", "JX114")
    ]


def test_a_cache_that_comes_back_longer_is_to_have_its_final_size_from_the_beginning(log):
    for n in range(4):
        decode(log, with_cache(n), returning(n + 1))
    assert told(log) == [True] * 3
    [(code, fix)] = advised(log)
    assert code == "JX114" and fix.startswith("create cache with its final length before the loop")
    assert "cache['v']" not in fix, "it is part of what was said"
    assert observed_sizes.varying(load(log.run)) == [], "there is nothing to choose"


def test_a_batch_of_another_size_that_the_function_gives_back_as_it_came_is_padded(log):
    for n in (8, 6, 4):
        decode(log, key(leaf("x", n)), {"": (n,)})
    assert told(log) == [False] * 2
    assert [code for code, _ in advised(log)] == ["JX101"]
    assert [v.path for v in observed_sizes.varying(load(log.run))] == ["x"]


def test_a_result_that_is_shorter_and_comes_back_is_not_lengthened(log):
    for n in (4, 3, 2):
        decode(log, with_cache(n), returning(n - 1))
    assert told(log) == [False] * 2


def test_an_argument_that_another_line_made_only_looks_like_the_result(log):
    made = {"made": [ELSEWHERE], "made_by": [0, 0, 0]}
    decode(log, with_cache(0), returning(1))
    decode(log, with_cache(1), returning(2), **made)
    assert told(log) == [False]


def test_one_that_the_line_of_the_call_made_is_the_result(log):
    decode(log, with_cache(0), returning(1))
    decode(log, with_cache(1), returning(2), made=[CALL], made_by=[0, 0, 0])
    assert told(log) == [True]


@pytest.mark.parametrize("results", [{}, {"[0]": (4,), "[1]['k']": (1, 4)}, returning(9)])
def test_without_such_a_result_nobody_says_that_the_function_did_it(results, log):
    decode(log, with_cache(0), results)
    decode(log, with_cache(1), returning(2))
    assert told(log) == [False]
