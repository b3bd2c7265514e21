# each epoch goes through batches of which the last one is smaller
# may: JX601 note
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


w, data = jnp.ones(8), np.random.default_rng(0).normal(size=(100, 8)).astype("float32")
for epoch in range(3):
    for x in np.array_split(data, [32, 64, 96]):
        w = train_step(w, x)  # must: JX101 first ~ drop the smaller batch
print(w.sum())
