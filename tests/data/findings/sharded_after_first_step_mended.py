# Mended: the parameters are on the mesh before the first step
# applies: fix-place-on-mesh, fix-replicate-first
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w)


w = jax.device_put(jnp.ones((16, 4)), replicated)
for i in range(4):
    x = jax.device_put(jnp.ones((32, 16)), sharded)
    w = step(w, x)
