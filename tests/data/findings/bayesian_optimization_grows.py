# Bayesian optimization: one point more in each iteration recompiles the fit and all operations around it
import jax
import jax.numpy as jnp
import numpy as np


def kernel(a, b, length):
    return jnp.exp(-0.5 * ((a[:, None] - b[None]) / length) ** 2)


def loss(length, x, y):
    covariance = kernel(x, x, length) + 1e-2 * jnp.eye(len(x))
    return 0.5 * y @ jnp.linalg.solve(covariance, y) + 0.5 * jnp.linalg.slogdet(covariance)[1]


gradient = jax.jit(jax.grad(loss))


def measure(x):
    return np.sin(6 * x)


xs = [0.1, 0.5, 0.9]
ys = [measure(x) for x in xs]
grid = jnp.linspace(0, 1, 200)
for _ in range(12):
    x, y = jnp.array(xs), jnp.array(ys)
    length = jnp.float32(0.3)
    for _ in range(5):
        length = length - 0.001 * gradient(length, x, y)  # must: JX101 first ~ the same changes of size also caused
    covariance = kernel(x, x, length) + 1e-2 * jnp.eye(len(xs))
    across = kernel(grid, x, length)
    mean = across @ jnp.linalg.solve(covariance, y)
    variance = 1 - jnp.sum(across * jnp.linalg.solve(covariance, across.T).T, 1)
    xs.append(float(grid[jnp.argmax(mean + 2 * jnp.sqrt(jnp.maximum(variance, 1e-9)))]))
    ys.append(measure(xs[-1]))
print(max(ys))
