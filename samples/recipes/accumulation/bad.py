"""A step computes the gradient of 4,096 rows at once: its activations need more than the 24 MiB that the
step may have.
"""

# jaxscope run --check max-temp-bytes=24MiB bad.py

from functools import partial

import jax
import jax.numpy as jnp

ROWS, WIDTH = 4096, 1024


def loss(w, batch):
    return jnp.mean((jnp.tanh(batch @ w["up"]) @ w["down"]) ** 2)


@partial(jax.jit, donate_argnames="w")
def train_step(w, batch):
    gradients = jax.grad(loss)(w, batch)
    return jax.tree.map(lambda w, g: w - 0.1 * g, w, gradients)


def main():
    w = {"up": jnp.ones((256, WIDTH)), "down": jnp.ones((WIDTH, 16))}
    batch = jnp.ones((ROWS, 256))
    for _ in range(3):
        w = train_step(w, batch)  # JX591
    print(f"mean {w['up'].mean():.3f}")


if __name__ == "__main__":
    main()
