# Mended: the type stays
# applies: fix-unused-donation
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnums=0)
def step(params, x):
    grads = jax.grad(lambda p: ((x @ p.astype("float32")) ** 2).mean())(params)
    return (params - 0.1 * grads).astype("bfloat16")


x = jnp.ones((64, 512))
for seed in range(3):
    p = step(jnp.ones((512, 1024), "bfloat16"), x)
