# the likelihood of a Kalman filter whose state is in an object: the steps are unrolled, and depend on each other
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
OBSERVED = jnp.asarray(np.cumsum(rng.normal(size=(60, 2)), axis=0), jnp.float32)


class Filter:
    def __init__(self, drift, noise):
        self.x, self.p = jnp.zeros(2), jnp.eye(2)
        self.q, self.r = jnp.eye(2) * drift, jnp.eye(2) * noise

    def predict(self):
        self.p = self.p + self.q

    def update(self, y):
        v, s = y - self.x, self.p + self.r
        gain = self.p @ jnp.linalg.inv(s)
        self.x = self.x + gain @ v
        self.p = (jnp.eye(2) - gain) @ self.p
        return -0.5 * (v @ jnp.linalg.solve(s, v) + jnp.linalg.slogdet(s)[1])


@jax.jit
@jax.value_and_grad
def loss(theta, observed):
    filtered, total = Filter(*jnp.exp(theta)), 0.0
    for y in observed:
        filtered.predict()
        total += filtered.update(y)  # must: JX202 first ~ jax\.lax\.scan\(body, state, observed\)
    return -total


theta = jnp.zeros(2)
for _ in range(5):
    value, gradient = loss(theta, OBSERVED)
    theta = theta - 1e-3 * gradient
print(theta)
