# A function is jitted for each size of a model, and for each size of the data: each program is needed
import jax
import jax.numpy as jnp
import numpy as np


def train(hidden):
    params = {"w": np.ones((8, hidden), np.float32), "v": np.ones((hidden, 1), np.float32)}
    fit = jax.jit(lambda p, x: jax.lax.fori_loop(0, 3, lambda _, p: jax.tree.map(lambda a: a * 0.9, p), p))
    return fit(params, np.ones((4, 8), np.float32))


def make_step(rate):
    return jax.jit(lambda w, x: w - rate * jnp.mean(x @ w))


for hidden in (10, 20, 50):
    train(hidden)
for size in (10, 20, 50):
    step, w = make_step(0.1), np.ones(8, np.float32)
    for _ in range(4):
        w = step(w, np.ones((size, 8), np.float32))
