"""A jitted function that closes over a NumPy array, a jax.Array in a closure cell, and a global."""

import jax
import jax.numpy as jnp
import numpy as np

GLOBAL_TABLE = jnp.arange(512.0)


def make_lookup():
    numpy_weights = np.linspace(0.0, 1.0, 512, dtype=np.float32)
    cell_bias = jnp.full((512,), 0.25)

    @jax.jit
    def lookup(x):
        return x * numpy_weights + cell_bias + GLOBAL_TABLE

    return lookup


def main():
    lookup = make_lookup()
    print(f"captured: {lookup(jnp.ones(512)).sum():.1f} {lookup(jnp.zeros(512)).sum():.1f}")


if __name__ == "__main__":
    main()
