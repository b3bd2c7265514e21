# the net is one jitted function, with a Python loop over its layers
# applies: fix-jit-step-function
import jax
import jax.numpy as jnp
import numpy as np


def layer(w, x):
    return jax.nn.gelu((x @ w) / jnp.sqrt(w.shape[0]))


@jax.jit
def net(ws, x):
    for w in ws:
        x = layer(w, x)
    return x


sizes = [32, 64, 96, 128, 160, 192, 224, 32]
ws = [np.cos(np.arange(m * n, dtype="float32")).reshape(m, n) for m, n in zip(sizes[:-1], sizes[1:])]
ws = jax.device_put(ws)
z = jnp.ones((8, 32))
for t in range(300):
    z = z - 0.01 * net(ws, z)
print(round(float(z.mean()), 3))
