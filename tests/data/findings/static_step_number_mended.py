# Mended: an ordinary argument
# applies: fix-static-size
import jax
import jax.numpy as jnp


@jax.jit
def step(w, i):
    return w * (1 - 0.1 / (i + 1))


w = jnp.ones(8)
for i in range(10):
    w = step(w, i)
