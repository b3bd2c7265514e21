# the series has its final length from the beginning, and the forecasts are written into it
# applies: fix-one-length
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def forecast(w, series, n):
    def step(state, x):
        state = jnp.tanh(state @ w + x)
        return state, state.mean()

    value = jax.lax.scan(step, jnp.zeros(16), series)[1][n - 1]
    return series.at[n].set(value), n + 1


rng = np.random.default_rng(0)
w = jnp.asarray(rng.normal(size=(16, 16)), "float32")
series = jax.device_put(np.zeros(32, "float32")).at[:8].set(rng.normal(size=8).astype("float32"))
n = jnp.int32(8)
for _ in range(24):
    series, n = forecast(w, series, n)
print(float(series[-1]))
