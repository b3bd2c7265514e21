"""One jit, at module level, of the whole step."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


@jax.jit
def train_step(w, x, y):
    value, gradient = jax.value_and_grad(loss)(w, x, y)
    return w - 0.1 * gradient, value


def main():
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(64, 16)), "f4"), jnp.asarray(rng.normal(size=64), "f4")
    w = jnp.zeros(16, "f4")
    for _ in range(8):
        w, value = train_step(w, x, y)
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
