"""One function is called in two ways and jitted with two sets of options: it is traced and compiled for
each of them.
"""

import jax
import jax.numpy as jnp


@jax.jit
def loss(w, x, power=2):
    return jnp.mean(jnp.abs(jnp.tanh(x @ w)) ** power)


def update(w, x):
    return w - 0.1 * jax.grad(loss)(w, x)


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    before = loss(w, x, 2)
    jax.jit(update)(w, x)  # "to warm up"
    train_step = jax.jit(update, donate_argnums=0)
    for _ in range(5):
        w = train_step(w, x)  # JX111
        value = loss(w, x, power=2)  # JX106
    print(f"loss {before:.3f} to {value:.3f}")


if __name__ == "__main__":
    main()
