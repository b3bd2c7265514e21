"""A length and a static number change by turns: most calls compile, and neither of the two causes most of
the compilations.
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="power")
def total(x, power):
    return jnp.sum(x**power)


def main():
    for n in range(1, 9):
        value = total(jnp.ones(n), power=n - 1)  # JX101 JX132
        if n < 8:
            value = total(jnp.ones(n), power=n)  # JX107
    print(f"total {value:.0f}")


if __name__ == "__main__":
    main()
