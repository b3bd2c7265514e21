"""An argument that the program constrains to another sharding than the caller passes."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.findings import fix_of

pytestmark = [pytest.mark.capture, pytest.mark.subprocess]

PROGRAM = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
constrained = jax.lax.with_sharding_constraint

@jax.jit
def put(x): return constrained(x, split).sum()
@jax.jit
def nested(x): return jax.jit(lambda x: constrained(x, split) * 2)(x).sum()
@jax.jit
def also_whole(x): return constrained(x, split).sum(), x @ x
@jax.jit
def of_another(x): return constrained(x, split).sum()
@jax.jit
def left_to_the_compiler(x): return constrained(x, split).sum()
@jax.jit
def double(x): return x * 2
@jax.jit
def result(x): return constrained(x * 2, split)

x = jax.device_put(jnp.ones((1024, 512)), whole)
square = jax.device_put(jnp.ones((1024, 1024)), whole)
put(x), nested(x), also_whole(square)
made = double(x)
of_another(made)
left_to_the_compiler(jnp.ones((1024, 512)))
result(x)
for s in (whole, split): double(jax.device_put(x, s))  # another sharding, for another reason
"""


def test_the_caller_is_advised_to_shard_the_argument(record):
    found = {
        f.function.partition("@")[0]: f
        for f in registry.findings(load(record(PROGRAM).run))
        if f.code == "JX503"
    }
    assert found.keys() == {"put", "nested", "of_another"}
    assert words.title(found["put"]) == (
        "put constrains x (f32[1024,512]) to P('data'), but receives it as replicated over 8 devices: each"
        " device holds all of it; with the requested sharding it would hold 1/8"
    )
    assert words.fix_text(found["put"]) == (
        "where the program creates x, use jax.device_put(array, NamedSharding(mesh, P('data')))"
    )
    assert words.fix_text(found["nested"]) == words.fix_text(found["put"])
    assert fix_of(found["put"]).kind == "device_put"
    assert words.fix_text(found["of_another"]).startswith(
        "in double, which computes x, give the results the sharding NamedSharding(mesh, P('data')), with out_shardings= in its jit"
    )
    assert fix_of(found["of_another"]).arguments == {
        "function": "double",
        "path": "x",
        "sharding": "P('data')",
    }
