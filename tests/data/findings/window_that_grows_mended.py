# Mended: the whole series, and how much of it is known
# applies: fix-one-length
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def forecast(series, day):
    age = day - 1 - jnp.arange(series.shape[0])
    weights = jnp.where(age >= 0, 0.9**age, 0)
    return (series * weights).sum() / weights.sum()


series = np.random.default_rng(0).normal(size=30).astype("float32")
for day in range(8, 20):
    print(forecast(series, day))
