"""All distances between a million points are computed in one table, ahead of time: the table has 4 TiB."""

import jax
import jax.numpy as jnp

POINTS = 1 << 20


@jax.jit
def nearest(x):
    return jnp.sort(jnp.abs(x[:, None] - x[None, :]), axis=1)[:, 1]


def main():
    nearest.lower(jax.ShapeDtypeStruct((POINTS,), jnp.float32)).compile()  # JX510
    print("compiled")


if __name__ == "__main__":
    main()
