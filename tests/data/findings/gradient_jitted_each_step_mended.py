# Mended: the gradient is made and jitted once
# applies: fix-wrap-once
import jax
import jax.numpy as jnp


def loss(w, x):
    return jnp.mean((x @ w) ** 2)


gradient = jax.jit(jax.grad(loss))
w, x = jnp.ones((16, 4)), jnp.ones((8, 16))
for _ in range(4):
    w = w - 0.1 * gradient(w, x)
print(w.sum())
