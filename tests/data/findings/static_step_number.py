# the number of the step is a static argument
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnums=1)
def step(w, i):
    return w * (1 - 0.1 / (i + 1))


w = jnp.ones(8)
for i in range(10):
    w = step(w, i)  # must: JX107 first
