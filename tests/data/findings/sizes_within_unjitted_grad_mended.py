"""The gradient is jitted: the jitted function in it is part of one program."""
# applies: fix-jit-this-call

import jax
import jax.numpy as jnp


@jax.jit
def dense(w, x):
    x = jax.lax.fori_loop(0, 20, lambda _, y: jnp.sin(y) + jnp.roll(y, 1), x)
    return jnp.tanh(x @ w)


def loss(weights, x):
    for w in weights:
        x = dense(w, x)
    return jnp.mean(jnp.square(x - 1.0)) + sum(jnp.sum(jnp.abs(w)) / w.size for w in weights)


weights = [jnp.asarray([[0.1] * 5] * 2), jnp.asarray([[0.1] * 1] * 5)]
x = jnp.asarray([[0.5] * 2] * 100)
gradient = jax.jit(jax.grad(loss))
for _ in range(3):
    grads = gradient(weights, x)
    print(grads[0].sum())
