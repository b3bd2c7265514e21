# the data loader of a library closes over the data set, which becomes a constant of the epoch
import pathlib
import sys

import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

_, batch = physics_library.batches(8192, 64)


@jax.jit
def epoch(w):
    def turn(i, w):
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(batch(i) @ w) ** 2).mean())(w)

    return jax.lax.fori_loop(0, 64, turn, w)  # must: JX507 first ~ epoch calls another function, which reads data


w = jnp.ones((64, 4))
for _ in range(3):
    w = epoch(w)
print(w.sum())
