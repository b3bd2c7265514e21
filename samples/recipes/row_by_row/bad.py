"""A jitted function is called for each example separately: 64 programs are started in each step."""

import jax
import jax.numpy as jnp

EXAMPLES, WIDTH = 64, 16


@jax.jit
def score(w, x):
    return jnp.tanh(jnp.tanh(x @ w) @ w).sum()


@jax.jit
def update(w, scores):
    return w + 0.01 * scores.mean()


def main():
    w, batch = jnp.eye(WIDTH), jnp.ones((EXAMPLES, 8, WIDTH))
    for _ in range(4):
        scores = jnp.stack([score(w, x) for x in batch])  # JX204
        w = update(w, scores)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
