# Mended: device_put, with the sharding that pmap returns
# applies: fix-place-replicas
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np

params = jax.device_put({f"layer{i}": np.full((8 + i, 16 + i), 0.1, "float32") for i in range(24)})
sharding = jax.sharding.NamedSharding(
    jax.sharding.Mesh(jax.devices(), ("batch",)), jax.sharding.PartitionSpec("batch")
)
params = jax.device_put(
    jax.tree.map(lambda a: np.broadcast_to(a, (jax.device_count(), *np.shape(a))), params), sharding
)


def train_step(params, x):
    mean = jax.lax.pmean(x, "batch").mean()
    return jax.tree.map(lambda a: 0.9 * a + mean, params)


step = jax.pmap(train_step, axis_name="batch")
for i in range(20):
    params = step(params, np.full((4, 8), i, "float32"))
print(float(params["layer0"].sum()))
