# replicate of Flax compiles a program for each shape of a parameter
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from flax import jax_utils

params = jax.device_put({f"layer{i}": np.full((8 + i, 16 + i), 0.1, "float32") for i in range(24)})
params = jax_utils.replicate(params)  # must: JX133 ~ use jax\.device_put instead of replicate


def train_step(params, x):
    mean = jax.lax.pmean(x, "batch").mean()
    return jax.tree.map(lambda a: 0.9 * a + mean, params)


step = jax.pmap(train_step, axis_name="batch")
for i in range(20):
    params = step(params, np.full((4, 8), i, "float32"))  # may: JX120
print(float(params["layer0"].sum()))
