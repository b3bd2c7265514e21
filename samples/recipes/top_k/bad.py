"""All scores are sorted to find the ten best."""

import jax
import jax.numpy as jnp


@jax.jit
def best(users, items):
    scores = users @ items.T
    return jnp.argsort(-scores, axis=1)[:, :10]  # JX209


def main():
    keys = jax.random.split(jax.random.key(0))
    users, items = jax.random.normal(keys[0], (256, 8)), jax.random.normal(keys[1], (2000, 8))
    for first in range(0, len(users), 64):
        print(f"the best items of user {first}: {best(users[first : first + 64], items)[0]}")


if __name__ == "__main__":
    main()
