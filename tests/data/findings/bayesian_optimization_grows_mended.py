# Mended: the data are padded to one size, with a mask, also before what was outside jit
# applies: fix-sizes-of-operations
import jax
import jax.numpy as jnp
import numpy as np

MOST = 16


def kernel(a, b, length):
    return jnp.exp(-0.5 * ((a[:, None] - b[None]) / length) ** 2)


def masked(x, mask, length):
    both = mask[:, None] * mask[None]
    return kernel(x, x, length) * both + jnp.diag(jnp.where(mask > 0, 1e-2, 1.0))


def loss(length, x, y, mask):
    covariance = masked(x, mask, length)
    return 0.5 * y @ jnp.linalg.solve(covariance, y) + 0.5 * jnp.linalg.slogdet(covariance)[1]


gradient = jax.jit(jax.grad(loss))


@jax.jit
def best(grid, x, y, mask, length):
    covariance = masked(x, mask, length)
    across = kernel(grid, x, length) * mask[None]
    mean = across @ jnp.linalg.solve(covariance, y)
    variance = 1 - jnp.sum(across * jnp.linalg.solve(covariance, across.T).T, 1)
    return grid[jnp.argmax(mean + 2 * jnp.sqrt(jnp.maximum(variance, 1e-9)))]


@jax.jit
def shorter(length, slope):
    return length - 0.001 * slope


def measure(x):
    return np.sin(6 * x)


def padded(values):
    return np.pad(np.asarray(values, np.float32), (0, MOST - len(values)))


xs = [0.1, 0.5, 0.9]
ys = [measure(x) for x in xs]
grid = jnp.linspace(0, 1, 200)
for _ in range(12):
    x, y, mask = padded(xs), padded(ys), padded([1.0] * len(xs))
    length = np.float32(0.3)
    for _ in range(5):
        length = shorter(length, gradient(length, x, y, mask))
    xs.append(float(best(grid, x, y, mask, length)))
    ys.append(measure(xs[-1]))
print(max(ys))
