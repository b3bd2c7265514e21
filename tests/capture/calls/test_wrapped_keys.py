"""What is static and what is an ordinary argument is what JAX's own key says, through every wrapper of
jit."""

import json
from pathlib import Path

import pytest

from jaxscope.analysis.keys import same_static

pytestmark = pytest.mark.capture

PROGRAM = Path(__file__).parents[2] / "programs" / "ordinary_or_static.py"


@pytest.fixture(scope="module")
def recorded(record_module):
    done = record_module(PROGRAM)
    return done, json.loads(done.out.strip().splitlines()[-1])


def statics(key):
    """Those with a name of the user's: ``<...>`` is what a wrapper compares beyond that."""
    return {s.path: s for s in key.static if not s.path.startswith("<") and "see the" not in s.repr}


def test_a_value_is_named_as_static_exactly_where_jax_traces_again_for_it(recorded):
    done, traced = recorded
    wrong = {}
    for name, again in traced.items():
        first, *_, last = [m.key for m in done.misses(name)]
        was, now = statics(first), statics(last)
        differ = {p for p in {*was, *now} if p not in was or p not in now or not same_static(was[p], now[p])}
        aval = {a.path: (a.type, a.dtype, a.weak_type) for a in first.arguments} != {
            a.path: (a.type, a.dtype, a.weak_type) for a in last.arguments
        }
        if bool(differ) != (again and not aval):
            wrong[name] = (again, differ)
    assert not wrong


def test_every_leaf_that_jax_traces_has_one_name(recorded):
    done, traced = recorded
    for name in traced:
        for miss in done.misses(name):
            paths = [a.path for a in miss.key.arguments]
            assert len(paths) == len(set(paths))
            assert not {*paths} & {*statics(miss.key)}, name


def test_ordinary_numbers_go_by_the_users_names(recorded):
    done, _ = recorded
    for name, path in {
        "nnx_float": "given",
        "nnx_keyword": "given",
        "nnx_in_a_dict": "given['rate']",
        "nnx_in_a_list_beside_a_module": "given[1]",
        "pmap_float": "given",
        "pmap_in_a_dict": "given['rate']",
        "partial_bound": "given.args[0]",
    }.items():
        leaves = {a.path: a.type for a in done.misses(name)[0].key.arguments}
        assert leaves.get(path) in ("float", "int"), (name, leaves)


@pytest.mark.long
def test_of_too_many_static_values_those_deep_in_a_model_are_left_out(record):
    pytest.importorskip("flax")
    done = record("""
import jax.numpy as jnp
from flax import nnx
from jaxscope.capture.calls import signature

signature.MAX_STATICS = 10

@nnx.jit(static_argnames="train")
def step(model, x, train):
    return model(x) * train

model = nnx.Sequential(*(nnx.Linear(2, 2, rngs=nnx.Rngs(0)) for _ in range(3)))
for train in True, False:
    step(model=model, x=jnp.ones(2), train=train)
""")
    flags = [statics(m.key)["train"].repr for m in done.misses("step")]
    assert {*flags} == {"True", "False"}
