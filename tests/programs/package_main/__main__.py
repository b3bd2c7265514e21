"""Entry point: takes the number of steps from the command line."""

import sys

import jax.numpy as jnp

from .model import update


def main(argv):
    steps = int(argv[0]) if argv else 3
    params = {"w": jnp.ones((4, 4)), "b": jnp.ones(4)}
    for _ in range(steps):
        params = update(params, jnp.ones(8))
    params = update(params, jnp.ones(5))
    print(f"package_main: {__name__} {__package__} {steps} steps, w {params['w'][0, 0]:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
