# applies: fix-make-once
# np.vectorize calls a function that uses one solver
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

solver = jaxopt.GradientDescent(lambda p, c: jnp.sum((p - c) ** 2), maxiter=20)
run = jax.jit(solver.run)


def fit(c):
    return float(run(jnp.zeros(3), c).params[0])


print(np.vectorize(fit, otypes=[float])(np.linspace(0, 1, 6)).shape)
print(jax.default_backend())
