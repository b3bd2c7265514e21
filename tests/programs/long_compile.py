"""One function that takes XLA about ten seconds to compile on one core: a long unrolled loop.

The length of the loop can be given: `python long_compile.py 40`.
"""

import sys

import jax
import jax.numpy as jnp

LENGTH = int(sys.argv[1]) if len(sys.argv) > 1 else 400


@jax.jit
def unrolled(x):
    for i in range(LENGTH):
        x = jnp.tanh(x @ x.T / (i + 1)) + jnp.sort(x, axis=i % 2)
    return x


if __name__ == "__main__":
    print("compiling", flush=True)
    print(f"long_compile: {unrolled(jnp.ones((8, 8))).shape}")
