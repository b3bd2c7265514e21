# Mended: one solver, under jit, that is given the data
# applies: fix-make-once
import jax
import jax.numpy as jnp
import jaxopt


def objective(w, data):
    return ((data @ w - 1) ** 2).mean()


fit = jax.jit(jaxopt.GradientDescent(fun=objective, maxiter=20).run)
for i in range(4):
    print(fit(jnp.zeros(3), jnp.ones((10, 3)) * i).params)
