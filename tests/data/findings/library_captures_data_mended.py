# Mended: the data set is an argument, and the epoch takes its batches itself
# applies: fix-pass-inner
import pathlib
import sys

import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site-packages"))

import physics_library

data, _ = physics_library.batches(8192, 64)


@jax.jit
def epoch(w, data):
    def turn(i, w):
        x = jax.lax.dynamic_slice_in_dim(data, i * 64, 64)
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)

    return jax.lax.fori_loop(0, 64, turn, w)


w, data = jnp.ones((64, 4)), jnp.asarray(data)
for _ in range(3):
    w = epoch(w, data)
print(w.sum())
