# Mended: the function is jitted, and the data have one size
# applies: fix-jit-called-back, and-pad-inside
# may: JX601 note
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

rng = np.random.default_rng(0)


@jax.jit
def surrogate(x, xs, ys, mask):
    k = mask[:, None] * mask[None] * jnp.exp(-0.5 * ((xs[:, None] - xs[None]) ** 2).sum(-1)) + 1e-3 * jnp.eye(len(xs))
    at = mask * jnp.exp(-0.5 * ((x - xs) ** 2).sum(-1))
    alpha = jnp.linalg.solve(k, ys)
    return at @ alpha - 2 * jnp.sqrt(jnp.maximum(1 - at @ jnp.linalg.solve(k, at), 1e-6))


def propose(xs, ys, mask):
    def objective(x):
        return float(surrogate(x, xs, ys, mask))

    return minimize(objective, rng.normal(size=2), method="Nelder-Mead", options={"maxiter": 15}).x


xs, mask = np.zeros((16, 2)), np.zeros(16)
xs[:4], mask[:4] = rng.normal(size=(4, 2)), 1
for n in range(4, 10):
    xs[n] = propose(xs, mask * (xs**2).sum(-1), mask)
    mask[n] = 1
print((xs[:10] ** 2).sum(-1).min())
