"""Groups are padded with -1, and negative indices are left out, too."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def totals(amounts, groups):
    return jnp.zeros(4).at[groups].add(amounts, mode="drop", wrap_negative_indices=False)


def main():
    groups = np.pad([0, 1, 1, 2, 0], (0, 3), constant_values=-1)
    print(totals(jnp.ones(8), groups))


if __name__ == "__main__":
    main()
