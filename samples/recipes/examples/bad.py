"""A Python loop goes over the examples of a batch: the program contains the same operations once for each
example.
"""

import jax
import jax.numpy as jnp

EXAMPLES, WIDTH = 16, 32


def score(w, x):
    return jnp.tanh(jnp.tanh(x @ w) @ w).sum()  # JX202


def loss(w, batch):
    return sum(score(w, x) for x in batch) / EXAMPLES


@jax.jit
def train_step(w, batch):
    return w - 0.1 * jax.grad(loss)(w, batch)


def main():
    w, batch = jnp.eye(WIDTH), jnp.ones((EXAMPLES, 8, WIDTH))
    for _ in range(4):
        w = train_step(w, batch)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
