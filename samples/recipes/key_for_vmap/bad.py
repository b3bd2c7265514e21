"""``vmap`` gets one key for the whole batch: all random walks make the same steps."""

import jax
import jax.numpy as jnp


def walk(key, x):
    return x + jax.random.normal(key, x.shape)


@jax.jit
def step(key, x):
    return jax.vmap(walk, in_axes=(None, 0))(key, x)  # JX139


def main():
    key, x = jax.random.key(0), jnp.zeros((256, 2))
    for _ in range(20):
        key, new = jax.random.split(key)
        x = step(new, x)
    print(f"spread of the walks {x.std(axis=0).mean():.3f}")


if __name__ == "__main__":
    main()
