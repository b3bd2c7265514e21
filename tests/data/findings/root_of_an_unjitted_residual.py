# An implicit solver: SciPy calls a residual of JAX operations again and again, outside jit
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import root

jax.config.update("jax_enable_x64", True)
A = jnp.asarray(np.eye(30) * 2 - np.eye(30, k=1) - np.eye(30, k=-1))


def residual(following, y, A):
    d = jnp.tanh(A @ following)
    return following - (y - 0.1 * d * jnp.exp(-(d**2)))


y = np.linspace(0.1, 1, 30)
for _ in range(2500):
    y = root(lambda following: residual(following, y, A), y, method="krylov").x  # must: JX605 first ~ apply jit to residual
print(y.sum())
