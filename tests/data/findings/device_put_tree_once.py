# one device_put of a tree of 6 NumPy arrays, before the loop
# never: JX602
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import numpy as np
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",))
params = [(np.ones((1024, 1024), "f4"), np.ones(1024, "f4")) for _ in range(3)]
params = jax.device_put(params, jax.NamedSharding(mesh, P()))


@jax.jit
def step(params, x):
    return [(w * 0.9 + (x.mean() * 0), b * 0.9) for w, b in params]


x = jax.device_put(np.ones((64, 1024), "f4"), jax.NamedSharding(mesh, P("batch")))
for _ in range(5):
    params = step(params, x)
print(params[0][1].sum())
