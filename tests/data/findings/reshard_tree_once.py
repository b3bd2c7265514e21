# a tree of small jax.Arrays put on a mesh once, before the loop
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
rep = jax.NamedSharding(mesh, P())
params = {f"w{i}": jnp.ones((32, 32)) for i in range(13)}
params = jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, rep), params)


@jax.jit
def step(p):
    return jax.tree.map(lambda x: x * 0.9, p)


for _ in range(5):
    params = step(params)
print(params["w0"].sum())
