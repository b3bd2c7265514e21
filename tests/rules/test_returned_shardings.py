"""A result that comes back with another sharding than it went in with: each remedy that is printed is tried."""

from __future__ import annotations

import re

import pytest

from jaxscope.model.load import load
from jaxscope.model.predictions import CONFIRMED, predictions
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = [pytest.mark.capture, pytest.mark.costly]

# Each function is called with its own result. What is put where, and what out_shardings say, is given by name.
PROGRAM = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

PUT, OUT = {put}, {out}
auto = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(AxisType.Explicit,) * 2)
split = lambda mesh: jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("dp", "tp")))

def jit(name, mesh=auto, wrap=lambda s: s):
    def decorate(f):
        f.__name__ = f.__qualname__ = name
        spec = OUT.get(name)
        return jax.jit(f) if spec is None else jax.jit(f, out_shardings=wrap(NamedSharding(mesh, spec)))
    return decorate

def start(name, default, mesh=auto):
    spec = PUT.get(name, default)
    array = jnp.ones((64, 64))
    return array if spec is None else jax.device_put(array, NamedSharding(mesh, spec))

@jit("replicated", wrap=lambda s: ({{"emb": s, "up": None}}, None))
def replicated(params, x):
    new = jax.lax.with_sharding_constraint(params["emb"] + x, NamedSharding(auto, P(None, "tp")))
    return {{"emb": new, "up": params["up"]}}, new.sum()

@jit("unplaced")
def unplaced(w, x):
    return w + x

@jit("typed", explicit)
def typed(w, x):
    return w + x

x = split(auto)
params = {{"emb": start("replicated", P()), "up": split(auto)}}
w, t, y = start("unplaced", None), start("typed", P(), explicit), split(explicit)
for _ in range(3):
    params, loss = replicated(params, x)
    w = unplaced(w, x)
    t = typed(t, y)

@jax.jit
def passed(a):
    return a * 2

for spec in (P(), P("dp")):  # made on the line of the call, but not by it
    passed(jax.device_put(jnp.ones(8), NamedSharding(auto, spec)))
"""
LOOPS = {"replicated": "JX115", "unplaced": "JX120", "typed": "JX115"}


@pytest.fixture(scope="module")
def run(record_module):
    recorded = record_module(PROGRAM.format(put={}, out={}))
    assert recorded.code == 0, recorded.err
    return load(recorded.run)


@pytest.fixture(scope="module")
def fixes(run):
    found = [f for f in registry.findings(run) if f.code in ("JX115", "JX120")]
    return {run.functions[f.function].name: f for f in found}


def compilations(recorded) -> dict[str, int]:
    assert recorded.code == 0, recorded.err
    run = load(recorded.run)
    return {f.name: f.compiled for f in run.functions.values() if f.name in LOOPS}


def literal(specs: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {spec}" for name, spec in specs.items()) + "}"


def test_the_recompile_is_announced_after_the_first_call_and_comes(run):
    assert {p.after.function.name: p.status for p in predictions(run)} == dict.fromkeys(LOOPS, CONFIRMED)


def test_the_fix_names_the_sharding_that_came_back_and_out_shardings(fixes):
    assert {name: fixes[name].code for name in LOOPS} == LOOPS
    assert "returns it, P(None, 'tp') on dp=4,tp=2;" in words.fix_text(fixes["replicated"])
    assert "unplaced returns it, P('dp', 'tp') on dp=4,tp=2. " in words.fix_text(fixes["unplaced"])
    assert all("out_shardings=" in words.fix_text(fixes[name]) for name in LOOPS)
    assert not any("in_shardings" in words.fix_text(f) for f in fixes.values()), (
        "it raises for a committed array"
    )


def test_an_argument_that_the_call_did_not_make_is_put_by_the_caller(fixes):
    assert (
        words.fix_text(fixes["passed"]) == "before every call, use jax.device_put to give a the same sharding"
    )


def test_put_where_the_fix_says_it_comes_back_nothing_compiles_twice(fixes, record):
    back = {name: re.search(r"returns it, (P\(.*?\)) on ", words.fix_text(fixes[name]))[1] for name in LOOPS}
    assert compilations(record(PROGRAM.format(put=literal(back), out={}))) == dict.fromkeys(LOOPS, 1)


def test_with_the_out_shardings_that_the_fix_says_nothing_compiles_twice(fixes, record):
    kept = dict.fromkeys(LOOPS, "P()")
    assert "had in the first call, P() on" in words.fix_text(
        fixes["replicated"]
    ) and "had in the first call, P() on" in words.fix_text(fixes["typed"])
    said = PROGRAM.format(put=literal({"unplaced": "P()"}), out=literal(kept))
    assert compilations(record(said)) == dict.fromkeys(LOOPS, 1)
