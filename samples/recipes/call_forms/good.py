"""The function is jitted once, where it is defined, and every call has the same form."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.jit
def loss(w, x, power=2):
    return jnp.mean(jnp.abs(jnp.tanh(x @ w)) ** power)


@partial(jax.jit, donate_argnums=0)
def train_step(w, x):
    return w - 0.1 * jax.grad(loss)(w, x)


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    before = loss(w, x, power=2)
    for _ in range(5):
        w = train_step(w, x)
        value = loss(w, x, power=2)
    print(f"loss {before:.3f} to {value:.3f}")


if __name__ == "__main__":
    main()
