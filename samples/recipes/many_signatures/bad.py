"""Each of 13 numbers is a NumPy number in some calls and a JAX number in others: these 8,192 kinds of calls
fill JAX's cache of fast calls.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)


@jax.jit
def total(*metrics):
    return sum(metrics)


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    w = train_step(w, x)
    for metrics in itertools.product((np.float32(1), jnp.float32(1)), repeat=13):
        value = total(*metrics)  # JX123
    w = train_step(w, x)  # JX126
    print(f"mean {w.mean():.3f}, total {value:.3f}")


if __name__ == "__main__":
    main()
