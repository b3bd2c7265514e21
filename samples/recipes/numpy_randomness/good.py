"""JAX draws the random numbers, from a key that is an argument: each step has other noise."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x, key, step):
    def loss(w):
        noise = jax.random.normal(jax.random.fold_in(key, step), x.shape)
        return jnp.mean(jnp.tanh((x + 0.1 * noise) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.ones((32, 8)), jnp.ones((64, 32))
    key = jax.random.key(0)
    for step in range(10):
        w = train_step(w, x, key, np.int32(step))
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
