# an ensemble of forecasts: each cycle factors the constant covariance of the model's noise again
import functools

import jax
import jax.numpy as jnp
import numpy as np

CELLS, MEMBERS = 240, 30
places = np.arange(CELLS) / CELLS
distance = np.abs(places[:, None] - places)
covariance = jnp.asarray(0.01 * np.exp(-((np.minimum(distance, 1 - distance) / 0.05) ** 2)) + 1e-4 * np.eye(CELLS), "f4")
mean = jnp.zeros(CELLS)


def slope(x):
    return (jnp.roll(x, -1, -1) - jnp.roll(x, 2, -1)) * jnp.roll(x, 1, -1) - x + 8.0


@jax.jit
def cycle(ensemble, key):
    ensemble = jax.lax.fori_loop(0, 4, lambda _, e: e + 0.01 * slope(e + 0.005 * slope(e)), ensemble)
    noise = jax.random.multivariate_normal(key, mean, covariance, (MEMBERS,))  # must: JX208 first ~ decomposes the same constant matrix in each iteration.*compute factor = jnp.linalg.cholesky
    return ensemble + noise


ensemble = 8.0 + jax.random.normal(jax.random.key(0), (MEMBERS, CELLS))
for n in range(200):
    ensemble = cycle(ensemble, jax.random.fold_in(jax.random.key(1), n))
print(f"{ensemble.mean():.3f} {functools.reduce(max, ensemble.std(0).tolist()):.3f}")
