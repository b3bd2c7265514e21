"""Two Python loops go over all pairs of two sets of points: the program contains the same operations once
for each pair.
"""

import jax
import jax.numpy as jnp

POINTS, CENTRES, WIDTH = 12, 4, 16


def distance(scale, a, b):
    return jnp.sqrt(jnp.sum((jnp.tanh(a - b) * scale) ** 2) + 1e-6)


@jax.jit
def fit(scale, points, centres):
    total = 0.0
    for i in range(POINTS):
        for j in range(CENTRES):
            total = total + distance(scale, points[i], centres[j])  # JX202
    return scale - 0.001 * total


def main():
    scale = jnp.ones(WIDTH)
    points, centres = jnp.ones((POINTS, WIDTH)), jnp.zeros((CENTRES, WIDTH))
    for _ in range(4):
        scale = fit(scale, points, centres)
    print(f"mean {scale.mean():.3f}")


if __name__ == "__main__":
    main()
