# a step outside jit that uses NumPy and SciPy for some of its operations
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

A = jnp.array([[1.0, 0.1], [0.0, 0.95]])


def density(x, mean):
    return np.exp(-np.sum((x - mean) ** 2)) + scipy.special.erf(np.asarray(x))[0]


def step(x, P):
    x = A @ x
    z = np.log(np.abs(np.concatenate([x, 2 * x]))).sum()  # must: JX133|JX605 first ~ np.sum .*np.concatenate .*jax.scipy.special.erf
    return x + 0.01 * z, P @ A + density(x, x * 0.9) + np.zeros((2, 2))


x, P = jnp.ones(2), jnp.eye(2)
for t in range(500):
    x, P = step(x, P)
print(np.asarray(x).round(4))
