"""``.lower()`` of what was traced before: one entry, whose arguments are what was given to it."""

import pytest

from jaxscope.model import causes
from jaxscope.model.causes import recompilations
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = pytest.mark.capture

PROGRAM = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
whole, split, respelled = (NamedSharding(mesh, s) for s in (P(), P("d"), P("d", None)))

@jax.jit
def step(p, x): return p["w"] * x

x = jax.device_put(np.ones((4, 4)), whole)
p = {"w": x}
step(p, x)
step.lower(p, jax.device_put(np.ones((4, 4)), split)).compile()

@jax.jit
def add(w, x): return x + w.sum()

add(jax.device_put(np.ones((4, 4)), split), np.ones(4))
add(jax.device_put(np.ones((4, 4)), respelled), jnp.ones(6))
"""


@pytest.fixture(scope="module")
def model(record_module):
    return load(record_module(PROGRAM).run)


def compilations(model, name):
    [f] = [f for f in model.functions.values() if f.name == name]
    return f, f.compilations


def test_what_is_lowered_without_a_trace_is_one_entry_with_all_its_phases(model):
    f, made = compilations(model, "step")
    assert [(c.entry, c.reached) for c in made] == [
        ("call", ["traced", "lowered", "compiled"]),
        ("aot", ["lowered", "compiled"]),
    ]
    assert {leaf.type for c in made for leaf in c.key.arguments} == {"jax.Array"}
    assert causes.of(model, made[1])[0].kind == "sharding"
    assert recompilations(f, model) == []
    assert not [words.title(x) for x in registry.findings(model) if x.code == "JX115"]


def test_a_respelled_sharding_is_no_cause_beside_a_shape(model):
    _, made = compilations(model, "add")
    assert [(c.kind, c.path) for c in causes.of(model, made[-1])] == [("shape", "x")]
