# a partial is jitted in each step
from functools import partial

import jax
import jax.numpy as jnp


def loss(scale, w, x):
    return ((x @ w * scale) ** 2).mean()


w, x = jnp.ones(8), jnp.ones((4, 8))
for i in range(6):
    w = w - 0.1 * jax.jit(jax.grad(partial(loss, 1.0 + i)))(w, x)  # must: JX110 first
