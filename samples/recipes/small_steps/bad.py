"""A simulation calls a jitted function for each of its small steps: starting the programs takes most of the time."""

import jax
import jax.numpy as jnp


@jax.jit
def step(state):
    x, v = state
    v = v - 0.01 * jnp.sin(x)
    return x + 0.01 * v, v


def main():
    state = (jnp.ones(4), jnp.zeros(4))
    positions = []
    for _ in range(40_000):
        state = step(state)  # JX608
        positions.append(state[0])
    print(f"largest angle {float(jnp.max(jnp.stack(positions[-100:]))):.3f}")


if __name__ == "__main__":
    main()
