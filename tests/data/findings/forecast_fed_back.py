# each forecast is appended to the series that the next one starts from: one finding for the lengths
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def forecast(w, series):
    def step(state, x):
        state = jnp.tanh(state @ w + x)
        return state, state.mean()

    return jax.lax.scan(step, jnp.zeros(16), series)[1]


rng = np.random.default_rng(0)
w = jnp.asarray(rng.normal(size=(16, 16)), "float32")
known = jax.device_put(rng.normal(size=8).astype("float32"))
parts = []
for _ in range(24):
    series = jnp.concatenate([known] + parts)
    values = forecast(w, series)  # must: JX101|JX114 first
    parts.append(values[-1:])
print(float(parts[-1][0]))
