# Mended: the computation is a jitted function with the Cholesky decomposition of jax.scipy, the method appends
# applies: fix-jit-part-of-method, fix-not-on-host, fix-change-outside, fix-jit-iteration, fix-without-attributes
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def stepped(mean, covariance, y):
    root = jax.scipy.linalg.cholesky(covariance, lower=True)
    points = jnp.concatenate([mean + 1.7 * root.T, mean - 1.7 * root.T])
    moved = jnp.stack([points[:, 0] + 0.1 * points[:, 1], 0.98 * points[:, 1] - 0.2 * jnp.sin(points[:, 0])], 1)
    mean = moved.mean(0)
    spread = moved - mean
    covariance = spread.T @ spread / 4 + 0.01 * jnp.eye(2)
    gain = covariance[:, 0] / (covariance[0, 0] + 0.25)
    return mean + gain * (y - mean[0]), covariance - jnp.outer(gain, covariance[0])


class Filter:
    def __init__(self, mean, covariance):
        self.mean, self.covariance, self.history = mean, covariance, [mean]

    def step(self, y):
        self.mean, self.covariance = stepped(self.mean, self.covariance, y)
        self.history.append(self.mean)


filtered = Filter(jnp.array([1.0, 0.0]), jnp.eye(2))
observed = np.sin(0.3 * np.arange(1200)) + np.random.default_rng(0).normal(0, 0.5, 1200)
for y in observed.astype("float32"):
    filtered.step(y)
print(float(np.stack(jax.device_get(filtered.history)).sum()) < 1e6)
