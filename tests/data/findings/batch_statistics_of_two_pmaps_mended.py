# Mended: both pmaps name their axis alike
# applies: fix-one-axis-name
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

DEVICES = 4


@functools.partial(jax.pmap, axis_name="batch")
def train_step(params, stats, x, y):
    def loss(params):
        hidden = x @ params["hidden"]
        mean, var = hidden.mean(0), hidden.var(0)
        error = jnp.tanh((hidden - mean) / jnp.sqrt(var + 1e-5)) @ params["out"] - y
        return (error**2).mean(), {"mean": 0.9 * stats["mean"] + 0.1 * mean, "var": 0.9 * stats["var"] + 0.1 * var}

    (value, stats), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    gradients = jax.lax.pmean(gradients, "batch")
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), stats, jax.lax.pmean(value, "batch")


average = jax.pmap(lambda x: jax.lax.pmean(x, "batch"), "batch")
rng = np.random.default_rng(0)
params = {"hidden": rng.normal(size=(32, 64)).astype(np.float32), "out": rng.normal(size=64).astype(np.float32)}
stats = {"mean": np.zeros(64, np.float32), "var": np.ones(64, np.float32)}
placed = NamedSharding(Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))
params, stats = jax.device_put(
    jax.tree.map(lambda x: np.stack([x] * DEVICES), (params, stats)), placed
)
for epoch in range(3):
    for step in range(6):
        x = rng.normal(size=(DEVICES, 16, 32)).astype(np.float32)
        params, stats, value = train_step(params, stats, x, x[..., 0])
    stats = average(stats)
    print(epoch, value[0])
