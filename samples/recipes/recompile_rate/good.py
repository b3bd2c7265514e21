"""One length with a mask, and the number is an argument: one program."""

import jax
import jax.numpy as jnp
import numpy as np

LENGTH = 8


@jax.jit
def total(x, length, power):
    return jnp.sum(jnp.where(jnp.arange(LENGTH) < length, x**power, 0))


def main():
    x = jnp.ones(LENGTH)
    for n in range(1, 9):
        value = total(x, np.int32(n), np.int32(n - 1))
        value = total(x, np.int32(n), np.int32(n))
    print(f"total {value:.0f}")


if __name__ == "__main__":
    main()
