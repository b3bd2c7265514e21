# Mended: the squared distances from the squares and one matrix product
# applies: fix-distances-by-product
import jax
import jax.numpy as jnp
import numpy as np

POINTS, CENTERS, SIZE = 12_000, 48, 24


@jax.jit
def improve(centers, points):
    squares = (points**2).sum(-1)[:, None] + (centers**2).sum(-1)
    distances = jnp.maximum(squares - 2 * points @ centers.T, 0)
    nearest = jnp.argmin(distances, axis=1)
    sums = jax.ops.segment_sum(points, nearest, CENTERS)
    counts = jax.ops.segment_sum(jnp.ones(POINTS), nearest, CENTERS)
    moved = jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centers)
    return moved, jnp.min(distances, axis=1).mean()


rng = np.random.default_rng(0)
true = rng.normal(size=(CENTERS, SIZE)) * 4
points = jnp.asarray(true[rng.integers(0, CENTERS, POINTS)] + rng.normal(size=(POINTS, SIZE)), jnp.float32)
centers = points[:CENTERS]
for step in range(30):
    centers, inertia = improve(centers, points)
print(f"{float(inertia):.2f}")
