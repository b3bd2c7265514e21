# sequences are time-major, and their first axis, the time, is sharded over the devices: a scan needs all of it
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))


@jax.jit
def step(w, inputs):
    def loss(w):
        def cell(h, x):
            return jnp.tanh(x @ w["x"] + h @ w["h"]), h.mean()

        start = jnp.zeros((inputs.shape[1], 32))
        return jnp.mean(jax.lax.scan(cell, start, inputs)[1] ** 2)  # must: JX401 first ~ another axis

    return jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w))


w = jax.device_put({"x": jnp.full((16, 32), 0.1), "h": jnp.full((32, 32), 0.1)}, NamedSharding(mesh, P()))
rng = np.random.default_rng(0)
for _ in range(4):
    batch = rng.normal(size=(32, 64, 16)).astype("float32")
    w = step(w, jax.device_put(batch, NamedSharding(mesh, P("data"))))
print(w["h"].sum())
