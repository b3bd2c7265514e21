# Mended: they are kept
# applies: fix-do-not-clear
import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w)


w, x = jnp.ones(8), jnp.ones((4, 8))
for epoch in range(4):
    for _ in range(5):
        w = step(w, x)
