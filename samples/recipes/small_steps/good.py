"""One jitted function runs all steps with ``jax.lax.scan``."""

import jax
import jax.numpy as jnp


def step(state, _):
    x, v = state
    v = v - 0.01 * jnp.sin(x)
    x = x + 0.01 * v
    return (x, v), x


@jax.jit
def simulate(state):
    return jax.lax.scan(step, state, length=40_000)


def main():
    _, positions = simulate((jnp.ones(4), jnp.zeros(4)))
    print(f"largest angle {float(jnp.max(positions[-100:])):.3f}")


if __name__ == "__main__":
    main()
