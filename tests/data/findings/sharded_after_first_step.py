# eight devices: the parameters are committed to one of them at first, and come back from the step sharded
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


w = jnp.ones((16, 4))
for i in range(4):
    x = jax.device_put(jnp.ones((32, 16)), sharded)
    w = step(w, x)  # must: JX115|JX116|JX120 first
