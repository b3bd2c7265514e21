"""Removes every listener of `jax.monitoring` in the middle of the program."""

import jax
import jax.numpy as jnp


@jax.jit
def before(x):
    return x + 1


@jax.jit
def after(x):
    return x * 2


def main():
    x = before(jnp.ones(3))
    jax.monitoring.clear_event_listeners()
    x = after(x)
    x = before(jnp.concatenate([x, x]))
    print(f"clear_listeners: {x.sum():.0f}")


if __name__ == "__main__":
    main()
