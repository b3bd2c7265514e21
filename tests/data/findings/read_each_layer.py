# A list of layers: a comprehension calls a jitted function for each of them
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def read(key, device, gain):
    noise = 0.01 * jax.random.normal(key, device["G"].shape)
    drift = jnp.exp(-device["age"] * 0.1)
    return gain * (device["G"] + noise) * drift


@jax.jit
def predict(weights, x):
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        x = jnp.tanh(x @ w + b)
    return x


rng = np.random.default_rng(0)
sizes = [(12, 48), (48,), (48, 32), (32,), (32, 4), (4,)]
devices = [{"G": rng.normal(size=s).astype("float32"), "age": np.ones(s, "float32")} for s in sizes]
x = rng.normal(size=(64, 12)).astype("float32")
key = jax.random.key(0)
for step in range(10):
    weights = [read(jax.random.fold_in(key, step), device, 1.0) for device in devices]  # must: JX101 first ~ Put this loop into a jitted function
    total = predict(weights, x).sum()
print(float(total))
