# one model on a mesh of one axis, then on one of two axes: each needs its own program
# never: mesh around the call|defined again|defined it again|applied again
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P


def loss(w, x):
    return jnp.mean((x @ w) ** 2)


x = np.random.default_rng(0).normal(size=(8, 16)).astype("float32")

jax.set_mesh(jax.make_mesh((4,), ("data",), devices=jax.devices()[:4]))
w, batch = jax.device_put(np.ones((16, 4), "float32"), P()), jax.device_put(x, P("data"))
print(jax.jit(loss)(w, batch))
gradient = jax.jit(jax.grad(loss))
print(gradient(w, batch).sum())

jax.set_mesh(jax.make_mesh((2, 2), ("data", "model"), devices=jax.devices()[:4]))
w, batch = jax.device_put(np.ones((16, 4), "float32"), P(None, "model")), jax.device_put(x, P("data"))
print(jax.jit(loss)(w, batch))
gradient = jax.jit(jax.grad(loss))
print(gradient(w, batch).sum())
