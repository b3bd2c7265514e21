# the step is jitted and uses jax.numpy and jax.scipy
# applies: fix-jit-step-function, fix-jit-functions, fix-not-on-host
import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np

A = jnp.array([[1.0, 0.1], [0.0, 0.95]])


def density(x, mean):
    return jnp.exp(-jnp.sum((x - mean) ** 2)) + jax.scipy.special.erf(jnp.asarray(x))[0]


@jax.jit
def step(x, P):
    x = A @ x
    z = jnp.log(jnp.abs(jnp.concatenate([x, 2 * x]))).sum()
    return x + 0.01 * z, P @ A + density(x, x * 0.9) + np.zeros((2, 2))


x, P = jnp.ones(2), jnp.eye(2)
for t in range(500):
    x, P = step(x, P)
print(np.asarray(x).round(4))
