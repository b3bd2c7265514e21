"""Groups are padded with -1, which mode="drop" does not leave out."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def totals(amounts, groups):
    return jnp.zeros(4).at[groups].add(amounts, mode="drop")  # JX307


def main():
    groups = np.pad([0, 1, 1, 2, 0], (0, 3), constant_values=-1)
    print(totals(jnp.ones(8), groups))


if __name__ == "__main__":
    main()
