"""The mesh around a call, as it is recorded: with its devices, inside a trace too."""

from __future__ import annotations

import pytest

from jaxscope.model.load import load

pytestmark = pytest.mark.capture

NESTED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh

devices = np.array(jax.devices())

@jax.jit
def inner(x):
    return x + 1

@jax.jit
def outer(x):
    return inner(x) * 2

for order in (devices, devices[::-1]):
    with jax.set_mesh(Mesh(order, ("a",))):
        outer(jnp.ones(3))
        jax.grad(lambda x: inner(x).sum())(jnp.ones(5))
outer(jnp.ones(4))
"""


def test_what_is_traced_within_another_trace_has_the_mesh_and_its_devices(record):
    run = load(record(NESTED, env={"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}).run)
    assert not [lost for lost in run.degraded if lost.seam == "trace_context"]
    orders = {settings.get("mesh devices") for settings in run.contexts.values()}
    assert orders == {"0-3", "3,2,1,0", None}
