# an unscented filter outside jit, whose step calls SciPy and appends to a list of the object
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky


class Filter:
    def __init__(self, mean, covariance):
        self.mean, self.covariance, self.history = mean, covariance, [mean]

    def step(self, y):
        root = cholesky(self.covariance, lower=True)
        points = jnp.concatenate([self.mean + 1.7 * root.T, self.mean - 1.7 * root.T])
        moved = jnp.stack([points[:, 0] + 0.1 * points[:, 1], 0.98 * points[:, 1] - 0.2 * jnp.sin(points[:, 0])], 1)  # must: JX605|JX133 first ~ write jax\.scipy\.linalg\.cholesky.*must not change self\.history
        mean = moved.mean(0)
        spread = moved - mean
        covariance = spread.T @ spread / 4 + 0.01 * jnp.eye(2)
        gain = covariance[:, 0] / (covariance[0, 0] + 0.25)
        self.mean = mean + gain * (y - mean[0])
        self.covariance = covariance - jnp.outer(gain, covariance[0])
        self.history.append(self.mean)


filtered = Filter(jnp.array([1.0, 0.0]), jnp.eye(2))
observed = np.sin(0.3 * np.arange(1200)) + np.random.default_rng(0).normal(0, 0.5, 1200)
for y in observed.astype("float32"):
    filtered.step(y)
print(float(np.stack(jax.device_get(filtered.history)).sum()) < 1e6)
