"""One ``vmap`` inside another: the inner one takes all centres, the outer one all points."""

import jax
import jax.numpy as jnp

POINTS, CENTRES, WIDTH = 12, 4, 16


def distance(scale, a, b):
    return jnp.sqrt(jnp.sum((jnp.tanh(a - b) * scale) ** 2) + 1e-6)


@jax.jit
def fit(scale, points, centres):
    to_all_centres = jax.vmap(distance, in_axes=(None, None, 0))
    table = jax.vmap(to_all_centres, in_axes=(None, 0, None))(scale, points, centres)
    return scale - 0.001 * table.sum()


def main():
    scale = jnp.ones(WIDTH)
    points, centres = jnp.ones((POINTS, WIDTH)), jnp.zeros((CENTRES, WIDTH))
    for _ in range(4):
        scale = fit(scale, points, centres)
    print(f"mean {scale.mean():.3f}")


if __name__ == "__main__":
    main()
