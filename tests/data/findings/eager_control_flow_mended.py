# Mended: lax.while_loop / scan outside jit, with a body defined anew in each call: compiled in every call
# applies: fix-jit-around-body
from functools import partial

import jax
import jax.numpy as jnp


@jax.jit
def line_search(x, k):
    def cond(c):
        return c[0] < 3

    def body(c):
        return c[0] + 1, jnp.sin(c[1] * k)

    return jax.lax.while_loop(cond, body, (0, x))[1]


@partial(jax.jit, static_argnums=1)
def run(x, n):
    def step(c, _):
        return jnp.cos(c), None

    return jax.lax.scan(step, x, None, length=n)[0]


x = jnp.ones(8)
k = jnp.float32(2)
for i in range(25):
    x = line_search(x, k)
    x = run(x, 5)
print(x.sum())
