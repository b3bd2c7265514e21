# Mended: the table is an argument of both
# applies: fix-pass-on
import jax
import jax.numpy as jnp
import numpy as np

table = jnp.asarray(np.random.default_rng(0).normal(size=(4000, 128)).astype("float32"))


@jax.jit
def look_up(table, i):
    return table[i]


@jax.jit
def step(table, w, i):
    return (look_up(table, i) @ w).sum()


w = jnp.ones((128, 16))
for n in range(5):
    print(step(table, w, np.arange(8) + n))
