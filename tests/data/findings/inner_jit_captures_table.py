# a jitted function inside another one closes over a large table
import jax
import jax.numpy as jnp
import numpy as np

table = jnp.asarray(np.random.default_rng(0).normal(size=(4000, 128)).astype("float32"))


@jax.jit
def look_up(i):
    return table[i]  # must: JX507 first ~ table


@jax.jit
def step(w, i):
    return (look_up(i) @ w).sum()


w = jnp.ones((128, 16))
for n in range(5):
    print(step(w, np.arange(8) + n))
