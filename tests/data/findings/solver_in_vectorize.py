# np.vectorize calls a function that makes a solver
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np


def fit(c):
    solver = jaxopt.GradientDescent(lambda p: jnp.sum((p - c) ** 2), maxiter=20)
    return float(solver.run(jnp.zeros(3)).params[0])  # must: JX133 first ~ create solver only once


print(np.vectorize(fit, otypes=[float])(np.linspace(0, 1, 6)).shape)
print(jax.default_backend())
