# Mended: only the variances are computed
# applies: fix-diagonal-alone
import jax
import jax.numpy as jnp
import numpy as np

NOISE = 0.1


def kernel(a, b):
    squared = jnp.sum((a[:, None] - b[None]) ** 2, axis=-1)
    return jnp.exp(-0.5 * squared)


@jax.jit
def fit(x, y):
    k = kernel(x, x) + NOISE * jnp.eye(len(x))
    chol = jnp.linalg.cholesky(k)
    inverse = jax.scipy.linalg.cho_solve((chol, True), jnp.eye(len(x)))
    return inverse, inverse @ y


@jax.jit
def predict(new, x, inverse, alpha):
    cross = kernel(new, x)
    mean = cross @ alpha
    return mean, jnp.sqrt(1.0 - jnp.sum((cross @ inverse) * cross, axis=1))


rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, (300, 3)).astype(np.float32)
y = np.sin(x).sum(axis=1) + NOISE * rng.normal(size=300).astype(np.float32)
inverse, alpha = fit(x, y)
widest = []
for _ in range(8):
    new = rng.uniform(-2, 2, (2000, 3)).astype(np.float32)
    mean, deviation = predict(new, x, inverse, alpha)
    widest.append((mean, deviation))
print([round(float(np.max(d)), 3) for _, d in widest])
