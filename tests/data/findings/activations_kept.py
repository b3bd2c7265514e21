# a list keeps an array of each step on the device, and nothing counts steps
import time

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    activations = jnp.tanh(x @ w)
    return w - 0.01 * (x.T @ activations) / x.shape[0], activations


rng = np.random.default_rng(0)
w, kept = rng.normal(size=(64, 64)).astype("float32"), []
for step in range(500):
    time.sleep(0.02)  # the batch is read
    x = rng.normal(size=(32, 64)).astype("float32")
    w, activations = train_step(w, x)  # must: JX501 first
    kept.append(activations)
    if step % 10 == 0:
        print(step, float(jnp.abs(w).mean()))
print(len(kept))
