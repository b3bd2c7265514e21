"""Each step computes the product of two large matrices, only to multiply it by a vector."""

import jax
import jax.numpy as jnp


@jax.jit
def step(x, a, b):
    return x + 0.1 * (b - a.T @ a @ x)  # JX211


def main():
    a = jax.random.normal(jax.random.key(0), (600, 600)) / 40
    b, x = jnp.ones(600), jnp.zeros(600)
    for _ in range(200):
        x = step(x, a, b)
    print(f"the largest element: {jnp.abs(x).max():.3f}")


if __name__ == "__main__":
    main()
