"""``lax.cond`` is used under ``vmap``: each step computes the start of a new episode for all environments,
although it is rarely needed.
"""

import jax
import jax.numpy as jnp

ENVIRONMENTS = 64


def start(x):
    return jax.lax.fori_loop(0, 60, lambda _, x: jnp.sin(x) + jnp.cos(x), jnp.zeros_like(x))


def move(x, action):
    x = x + action
    return jax.lax.cond(jnp.max(x) > 100.0, start, lambda x: x, x)  # JX206


@jax.jit
def step(x, actions):
    return jax.vmap(move)(x, actions)


def main():
    x, actions = jnp.zeros((ENVIRONMENTS, 8)), jnp.full((ENVIRONMENTS, 8), 0.5)
    for _ in range(20):
        x = step(x, actions)
    print(f"mean {x.mean():.3f}")


if __name__ == "__main__":
    main()
