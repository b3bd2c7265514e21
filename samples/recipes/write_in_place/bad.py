"""A simulation writes its states into a large array outside jit: each write copies the array."""

import jax
import jax.numpy as jnp


@jax.jit
def step(u):
    return u + 0.1 * (jnp.roll(u, 1) - u)


def main():
    u = jnp.sin(jnp.linspace(0.0, 6.28, 8192))
    record = jnp.zeros((1000, 8192))
    for n in range(60):
        u = step(u)
        record = record.at[n].set(u)  # JX607
    print(f"mean {record.mean():.3f}")


if __name__ == "__main__":
    main()
