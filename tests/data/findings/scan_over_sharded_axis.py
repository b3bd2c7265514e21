# gradients of small batches are added up in a scan over the axis that is sharded over the devices
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
replicated = NamedSharding(mesh, P())
batch = NamedSharding(mesh, P("data"))


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["in"]) @ w["out"] - y) ** 2)


@jax.jit
def step(w, x, y):
    def micro(sums, xy):
        return jax.tree.map(jnp.add, sums, jax.grad(loss)(w, *xy)), None

    sums = jax.tree.map(jnp.zeros_like, w)
    sums, _ = jax.lax.scan(micro, sums, (x, y))  # must: JX401 first ~ P\(None, .data.\)
    return jax.lax.with_sharding_constraint(jax.tree.map(lambda w, g: w - 0.01 * g, w, sums), replicated)


rng = np.random.default_rng(0)
w = {"in": np.ones((256, 64), "float32"), "out": np.ones((64, 1), "float32")}
w = jax.device_put(w, replicated)
for _ in range(3):
    x = jax.device_put(rng.normal(size=(8, 512, 256)).astype("float32"), batch)
    y = jax.device_put(rng.normal(size=(8, 512, 1)).astype("float32"), batch)
    w = step(w, x, y)
print(float(w["out"].sum()))
