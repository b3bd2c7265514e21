# SciPy fits ten parameters of a jitted likelihood, and estimates its gradient by finite differences
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

PARAMETERS = 10


@jax.jit
def negative_log_likelihood(theta, x, y):
    features = jnp.cos(x[:, None] * jnp.arange(PARAMETERS))
    for _ in range(3):
        features = jnp.tanh(features @ (jnp.eye(PARAMETERS) + 0.1))
    return jnp.mean((features @ theta - y) ** 2) + 1e-3 * jnp.sum(theta**2)


def fit(x, y):
    def objective(theta):
        return float(negative_log_likelihood(jnp.asarray(theta, jnp.float32), x, y))  # must: JX601 first ~ objective|waits

    return minimize(objective, np.zeros(PARAMETERS), method="BFGS", options={"maxiter": 15, "eps": 1e-3})


rng = np.random.default_rng(0)
for _ in range(6):
    x = rng.uniform(-3, 3, 20000).astype(np.float32)
    y = np.sin(x) + 0.1 * rng.normal(size=20000).astype(np.float32)
    found = fit(x, y)
    print(found.nfev, round(float(found.fun), 4))
