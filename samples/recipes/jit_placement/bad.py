"""``jax.jit`` is called inside the loop: each iteration makes a new function object, for which JAX compiles
again.
"""

import jax
import jax.numpy as jnp
import numpy as np


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


def main():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 16)).astype("f4"), rng.normal(size=64).astype("f4")
    w = np.zeros(16, "f4")
    for _ in range(8):
        gradient = jax.jit(lambda w: jax.grad(loss)(w, x, y))(w)  # JX110
        w = w - 0.1 * np.asarray(gradient)
    print(f"loss {loss(w, x, y):.3f}")


if __name__ == "__main__":
    main()
