# the history of a series is passed to jit, and is longer each day
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def forecast(history):
    weights = 0.9 ** jnp.arange(history.shape[0])[::-1]
    return (history * weights).sum() / weights.sum()


series = np.random.default_rng(0).normal(size=30).astype("float32")
for day in range(8, 20):
    print(forecast(series[:day]))  # must: JX101|JX114 first
