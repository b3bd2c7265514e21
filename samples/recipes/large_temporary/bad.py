"""A program computes distances outside jit, and stores the differences of all pairs of points."""

import jax
import jax.numpy as jnp
import numpy as np


def nearest(points, centers):
    return ((points[:, None] - centers) ** 2).sum(-1).argmin(1)  # JX516


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
