# pmap: each training step draws the same noise, because the keys of the devices never change
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def train_step(key, w, batch):
    def loss(w):
        noise = jax.random.normal(key, batch.shape)
        return jnp.mean((jnp.tanh((batch + noise) @ w) - noise) ** 2)

    return w - 0.1 * jax.lax.pmean(jax.grad(loss)(w), "batch")


step = jax.pmap(train_step, axis_name="batch")
sharding = NamedSharding(Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))
keys = jax.device_put(jax.random.split(jax.random.PRNGKey(0), 4), sharding)
w = jax.device_put(jnp.zeros((4, 64, 64)), sharding)
rng = np.random.default_rng(0)
for i in range(50):
    batch = rng.normal(size=(4, 8, 64)).astype("float32")
    w = step(keys, w, batch)  # must: JX135 first ~ jax\.random\.split\(new, jax\.device_count\(\)\)
print(float(w.sum()))
