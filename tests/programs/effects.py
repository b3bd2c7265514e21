"""Warm calls that miss the fast path: debug prints, pmap, and NumPy in place of a jax.Array."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def talkative(x):
    jax.debug.print("x[0] is {}", x[0])
    return x + 1


@jax.pmap
def mapped(x):
    return x * 2


@jax.jit
def plain(x):
    return x - 1


def main():
    x = jnp.zeros(3)
    for _ in range(50):
        x = talkative(x)
    y = jnp.ones((1, 3))
    for _ in range(20):
        y = mapped(y)
    z = plain(jnp.ones(4))
    z = plain(np.ones(4, np.float32))
    z = plain(z)
    jax.effects_barrier()
    print(f"effects: {x[0]:.0f} {y[0, 0]:.0f} {z[0]:.0f}")


if __name__ == "__main__":
    main()
