"""What can become of an argument: donated, dropped by the caller, kept by the caller, unused."""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, donate_argnames=("donated",))
def step(donated, dropped, kept, unused):
    return donated + 1, (dropped * kept).sum()


def main():
    donated = jnp.zeros((64, 64))
    kept = jnp.ones((64, 64))
    unused = jnp.ones((32, 32))
    first = donated
    for _ in range(3):
        dropped = jnp.full((64, 64), 2.0)
        donated, total = step(donated, dropped, kept, unused)
        del dropped
    print(
        f"donation: first deleted {first.is_deleted()}, kept deleted {kept.is_deleted()}, total {total:.0f}"
    )
    print(f"donation: value {donated[0, 0]:.0f}, unused {unused.shape} deleted {unused.is_deleted()}")


if __name__ == "__main__":
    main()
