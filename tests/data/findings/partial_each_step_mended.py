# Mended: the function is jitted once, the scale is an argument
# applies: fix-jit-partial-once
import jax
import jax.numpy as jnp


def loss(scale, w, x):
    return ((x @ w * scale) ** 2).mean()


grad = jax.jit(jax.grad(loss, argnums=1))
w, x = jnp.ones(8), jnp.ones((4, 8))
for i in range(6):
    w = w - 0.1 * grad(1.0 + i, w, x)
