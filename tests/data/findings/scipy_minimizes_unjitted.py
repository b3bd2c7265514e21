# Bayesian optimization: SciPy minimizes a function of JAX that is not jitted, of data that grow
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

rng = np.random.default_rng(0)


def surrogate(x, xs, ys):
    k = jnp.exp(-0.5 * ((xs[:, None] - xs[None]) ** 2).sum(-1)) + 1e-3 * jnp.eye(len(xs))
    at = jnp.exp(-0.5 * ((x - xs) ** 2).sum(-1))
    alpha = jnp.linalg.solve(k, ys)
    return at @ alpha - 2 * jnp.sqrt(jnp.maximum(1 - at @ jnp.linalg.solve(k, at), 1e-6))


def propose(xs, ys):
    def objective(x):
        return float(surrogate(jnp.asarray(x), xs, ys))

    return minimize(objective, rng.normal(size=2), method="Nelder-Mead", options={"maxiter": 15}).x  # must: JX133 first ~ scipy calls propose.objective, .* pad


xs = jnp.asarray(rng.normal(size=(4, 2)))
ys = (xs**2).sum(-1)
for _ in range(6):
    x = propose(xs, ys)
    xs = jnp.concatenate([xs, x[None]])  # may: JX133 note
    ys = (xs**2).sum(-1)
print(ys.min())
