# a solver of jaxopt made in each fit, for an objective that closes over the data
import jax.numpy as jnp
import jaxopt


def fit(data):
    def objective(w):
        return ((data @ w - 1) ** 2).mean()

    solver = jaxopt.GradientDescent(fun=objective, maxiter=20)
    return solver.run(jnp.zeros(3)).params  # must: JX133 first ~ once


for i in range(4):
    print(fit(jnp.ones((10, 3)) * i))  # may: JX133 note
