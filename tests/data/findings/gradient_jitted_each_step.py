# jax.jit(jax.grad(loss)) in each step
import jax
import jax.numpy as jnp


def loss(w, x):
    return jnp.mean((x @ w) ** 2)


w, x = jnp.ones((16, 4)), jnp.ones((8, 16))
for _ in range(4):
    w = w - 0.1 * jax.jit(jax.grad(loss))(w, x)  # must: JX110 first
print(w.sum())
