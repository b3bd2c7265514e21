"""Fails after three good steps."""

import jax
import jax.numpy as jnp


@jax.jit
def step(x):
    return x * 2


def main():
    x = jnp.ones(3)
    for i in range(1, 10):
        if i > 3:
            raise RuntimeError("the data loader died")
        x = step(x)
        print(f"step {i}: {x[0]:.0f}", flush=True)


if __name__ == "__main__":
    main()
