"""The gradient is that of the 64 rows, and only these are changed."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, donate_argnums=0)
def train_step(table, i, y):
    def loss(rows):
        return jnp.mean((rows.sum(-1) - y) ** 2)

    return table.at[i].add(-0.1 * jax.grad(loss)(table[i]))


def main():
    table = jnp.zeros((20000, 32))
    for step in range(20):
        table = train_step(table, (jnp.arange(64) * 7 + step) % 20000, jnp.ones(64))
    print(f"sum {table.sum():.3f}")


if __name__ == "__main__":
    main()
