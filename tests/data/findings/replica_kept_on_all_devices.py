# pmap: a copy of one replica of the state is made from x[0], which puts it on all devices, and is kept
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import jaxscope


def step(w, x):
    return w - 0.1 * jax.lax.pmean(jax.grad(lambda w: ((x @ w) ** 2).mean())(w), "batch")


p_step = jax.pmap(step, axis_name="batch", donate_argnums=0)
sharding = NamedSharding(jax.sharding.Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))
state = jax.device_put(np.ones((4, 4096, 2048), "float32"), sharding)
x = jax.device_put(np.ones((4, 4, 4096), "float32"), sharding)
for _ in range(3):
    state = p_step(state, x)
template = jax.tree.map(lambda a: a[0], state)  # must: JX502 first ~ Keep it on the host instead
jaxscope.snapshot()
print(template.sum())
