# Mended: the smaller batch is dropped
# applies: fix-odd-batch
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


w, data = jnp.ones(8), np.random.default_rng(0).normal(size=(100, 8)).astype("float32")
for epoch in range(3):
    for x in np.split(data[:96], 3):
        w = train_step(w, x)
print(w.sum())
