# Mended: SciPy gets the gradient, too
# applies: fix-minimize-with-gradient
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

WEEKS = 40


def deviance(theta, counts):
    def week(carry, log_beta):
        susceptible, infected = carry
        new = susceptible * (1.0 - jnp.exp(-jnp.exp(log_beta) * infected))
        return (susceptible - new, 0.6 * infected + new), new

    _, new = jax.lax.scan(week, (jnp.full(2000, 0.999), jnp.full(2000, 0.001)), theta)
    expected = 1e4 * new.mean(1) + 1e-3
    return jnp.mean(expected - counts * jnp.log(expected)) + jnp.sum(jnp.diff(theta) ** 2)


def fit(counts):
    fun = jax.jit(jax.value_and_grad(partial(deviance, counts=jnp.asarray(counts))))
    bounds = [(-3.0, 1.0)] * WEEKS
    return minimize(
        fun, np.zeros(WEEKS), jac=True, method="L-BFGS-B", bounds=bounds
    )


rng = np.random.default_rng(0)
found = fit(rng.poisson(40.0 + 30.0 * np.sin(np.arange(WEEKS) / 5.0)).astype(np.float32))
print(found.nfev, float(found.fun))
