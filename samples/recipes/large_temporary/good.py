"""The distances are computed in a jitted function, with a matrix product."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def nearest(points, centers):
    return ((centers**2).sum(-1) - 2 * points @ centers.T).argmin(1)


@jax.jit
def means(points, index):
    counts = jnp.bincount(index, length=64)
    return jnp.zeros((64, 16)).at[index].add(points) / counts[:, None]


def main():
    rng = np.random.default_rng(0)
    points = jnp.asarray(rng.normal(size=(20_000, 16)), jnp.float32)
    centers = points[:64]
    for _ in range(5):
        centers = means(points, nearest(points, centers))
    print(f"mean {centers.mean():.4f}")


if __name__ == "__main__":
    main()
