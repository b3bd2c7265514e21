# A pipeline of features in helper functions runs operation by operation: no line has many compilations
import jax
import jax.numpy as jnp
import numpy as np


def normalize(x):
    centered = x - jnp.mean(x, axis=0)
    return centered / (jnp.std(centered, axis=0) + 1e-6)


def windows(x, length):
    rows = jnp.stack([jnp.sin(x * k) for k in range(1, length)])
    taper = jnp.cos(jnp.linspace(-1.5, 1.5, x.shape[-1]))
    return jnp.sum(rows * taper, axis=0)


def spectrum(x):
    energy = jnp.abs(jnp.fft.rfft(x, axis=0)) ** 2
    return jnp.log1p(jnp.maximum(energy, 1e-3))


def features(x):
    x = normalize(x)  # must: JX133 first ~ of features and the functions that they call
    y = windows(x, 5)
    z = spectrum(x)
    low, high = jnp.min(y, axis=0), jnp.max(y, axis=0)
    scaled = jnp.clip((y - low) / (high - low + 1e-6), 0.0, 1.0)
    return jnp.concatenate([jnp.sort(scaled, axis=0), z, jnp.cumsum(jnp.tanh(y), axis=0)], axis=0)


@jax.jit
def fit(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


x = features(np.random.default_rng(0).normal(size=(64, 16)).astype("float32"))
w = np.ones(16, "float32")
for _ in range(5):
    w = fit(w, x)
print(float(w[0]))
