"""A function reads column 4 of an array with four columns; JAX reads column 3 instead."""

import jax
import jax.numpy as jnp


@jax.jit
def speeds(states):  # columns: x, y, vx, vy
    return jnp.hypot(states[:, 3], states[:, 4])  # JX308


def main():
    print(speeds(jnp.arange(12.0).reshape(3, 4)))


if __name__ == "__main__":
    main()
