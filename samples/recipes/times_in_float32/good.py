"""The times are counted from the first event, so that float32 keeps their differences."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def rate(times):
    return 1 / jnp.diff(times).mean(), (jnp.diff(times) == 0).mean()


def main():
    times = 1_700_000_000 + np.cumsum(np.random.default_rng(0).exponential(60.0, 500))
    mean, equal = rate(jnp.asarray(times - times[0]))
    print(f"{mean:.4f} events a second, {100 * equal:.0f} % of the gaps are 0")


if __name__ == "__main__":
    main()
