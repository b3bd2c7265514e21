"""The learning rate is an array argument; the configuration is a frozen dataclass, which compares by
value.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Config:
    width: int
    power: int


@jax.jit
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
        w = train_step(w, x, y, rate=np.float32(0.1 * 0.9**step))
        error = evaluate(w, Config(16, 2), x)
    print(f"error {error:.3f}")


if __name__ == "__main__":
    main()
