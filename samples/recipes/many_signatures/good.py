"""The numbers are one NumPy array: one kind of call."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)


@jax.jit
def total(metrics):
    return metrics.sum()


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    w = train_step(w, x)
    for metrics in itertools.islice(itertools.product((np.float32(1), np.float32(2)), repeat=13), 500):
        value = total(np.stack([np.asarray(m) for m in metrics]))
    w = train_step(w, x)
    print(f"mean {w.mean():.3f}, total {value:.3f}")


if __name__ == "__main__":
    main()
