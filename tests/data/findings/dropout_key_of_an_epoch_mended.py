# each step gets a key of its own
# applies: fix-new-key
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


class Trainer:
    training = True

    @staticmethod
    @partial(jax.jit, static_argnames=("training",))
    def step(w, x, rng, training=False):
        def loss(w):
            keep = jax.random.bernoulli(rng, 0.8, x.shape) if training else True
            return jnp.mean((jnp.where(keep, x, 0) @ w - x[:, 0]) ** 2)

        return w - 0.01 * jax.grad(loss)(w)

    def epoch(self, w, batches, rng):
        for i, x in enumerate(batches):
            w = self.step(w, x, jax.random.fold_in(rng, i), training=self.training)
        return w


batches = np.random.default_rng(0).normal(size=(24, 32, 16)).astype("float32")
w, rng = jnp.ones(16), jax.random.key(0)
for _ in range(3):
    rng, key = jax.random.split(rng)
    w = Trainer().epoch(w, batches, key)
print(w.sum())
