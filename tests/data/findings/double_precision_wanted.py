# a program that asks for float64, as Cholesky factors of kernels need: its functions have no other floats
# never: float64
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

x = np.sort(np.random.default_rng(0).uniform(0, 10, 64))
y = np.sin(x)


@jax.jit
def loss(params):
    distance = (x[:, None] - x[None, :]) / jnp.exp(params["log_scale"])
    kernel = jnp.exp(-0.5 * distance**2) + 1e-6 * jnp.eye(64)
    factor = jnp.linalg.cholesky(kernel)
    half = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * half @ half + jnp.log(jnp.diagonal(factor)).sum()


step = jax.jit(lambda params: jax.tree.map(lambda p, g: p - 0.01 * g, params, jax.grad(loss)(params)))
params = {"log_scale": jnp.zeros(())}
for _ in range(20):
    params = step(params)
print(params["log_scale"])
