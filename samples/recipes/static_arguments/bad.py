"""A configuration object and a learning rate are static arguments: the step is compiled for each new value
and each new object.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


class Config:
    """Equal objects are not equal for Python: it has no ``__eq__``."""

    def __init__(self, width, power):
        self.width, self.power = width, power


@partial(jax.jit, static_argnames="rate")
def train_step(w, x, y, rate):
    gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - rate * gradient


@partial(jax.jit, static_argnums=1)
def evaluate(w, config, x):
    return jnp.mean(jnp.abs(x[:, : config.width] @ w[: config.width]) ** config.power)


def main():
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(64, 16))), jnp.asarray(rng.normal(size=64))
    w = jnp.zeros(16)
    for step in range(6):
        w = train_step(w, x, y, rate=0.1 * 0.9**step)  # JX107
        error = evaluate(w, Config(16, 2), x)  # JX108
    print(f"error {error:.3f}")


if __name__ == "__main__":
    main()
