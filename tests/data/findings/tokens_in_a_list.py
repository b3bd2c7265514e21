# The token ids of a text are a Python list, which jnp.array converts
import random

import jax
import jax.numpy as jnp

rng = random.Random(0)
ids = [rng.randrange(1000) for _ in range(1_500_000)]
data = jnp.array(ids)  # must: JX604 first ~ np.array


@jax.jit
def step(table, start):
    window = (start + jnp.arange(256)) % 1000
    return table - 0.01 * jax.grad(lambda t: jnp.mean(jnp.tanh(t[window]) ** 2))(table)


table = jnp.ones((1000, 16))
for k in range(20):
    table = step(table, data[k])
print(f"{table.sum():.3f}")
