# a net outside jit: its layers have several widths, which do not change from call to call
# must: JX133|JX605 first ~ apply jit to net as a whole
# may: JX133 note
# never: pad the arrays|jax.lax.scan or
import jax
import jax.numpy as jnp
import numpy as np


def layer(w, x):
    return jax.nn.gelu((x @ w) / jnp.sqrt(w.shape[0]))


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
