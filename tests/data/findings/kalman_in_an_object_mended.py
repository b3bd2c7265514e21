# applies: fix-scan-over
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
OBSERVED = jnp.asarray(np.cumsum(rng.normal(size=(60, 2)), axis=0), jnp.float32)


@jax.jit
@jax.value_and_grad
def loss(theta, observed):
    q, r = (jnp.eye(2) * scale for scale in jnp.exp(theta))

    def step(state, y):
        x, p, total = state
        p = p + q
        v, s = y - x, p + r
        gain = p @ jnp.linalg.inv(s)
        new = -0.5 * (v @ jnp.linalg.solve(s, v) + jnp.linalg.slogdet(s)[1])
        return (x + gain @ v, (jnp.eye(2) - gain) @ p, total + new), None

    (_, _, total), _ = jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2), 0.0), observed)
    return -total


theta = jnp.zeros(2)
for _ in range(5):
    value, gradient = loss(theta, OBSERVED)
    theta = theta - 1e-3 * gradient
print(theta)
