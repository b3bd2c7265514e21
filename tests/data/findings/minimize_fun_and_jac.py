# SciPy gets a function and its gradient, each jitted on its own: each evaluation simulates twice
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

N = 256


class Deblurring:
    def __init__(self, observed, kernel):
        self.observed, self.kernel = jnp.asarray(observed), jnp.asarray(kernel)
        self.value = jax.jit(self.misfit)
        self.gradient = jax.jit(jax.grad(self.misfit))

    def misfit(self, m):
        image = m.reshape(N, N)
        blurred = image
        for _ in range(6):
            blurred = jax.scipy.signal.convolve2d(blurred, self.kernel, mode="same")
        rough = jnp.sum(jnp.diff(image, axis=0) ** 2) + jnp.sum(jnp.diff(image, axis=1) ** 2)
        return jnp.sum((blurred - self.observed) ** 2) + 1e-3 * rough

    def fun(self, m):
        return float(self.value(m))  # must: JX205 first ~ jac=True to minimize

    def jac(self, m):
        return np.asarray(self.gradient(m), dtype=np.float64)

    def run(self):
        return minimize(self.fun, np.zeros(N * N), jac=self.jac, method="L-BFGS-B", options={"maxiter": 40})


rng = np.random.default_rng(0)
kernel = np.exp(-0.5 * (np.arange(-3, 4)[:, None] ** 2 + np.arange(-3, 4) ** 2)).astype("float32")
result = Deblurring(rng.random((N, N)).astype("float32"), kernel / kernel.sum()).run()
print(result.nfev, result.fun)
