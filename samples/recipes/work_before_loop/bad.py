"""A Gaussian process factorizes the same matrix again for each batch of points."""

import jax
import jax.numpy as jnp

POINTS = 400


def kernel(a, b):
    return jnp.exp(-((a[:, None] - b[None]) ** 2))


@jax.jit
def predict(x, y, new):
    chol = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(len(x)))
    weights = jax.scipy.linalg.cho_solve((chol, True), y)
    return kernel(new, x) @ weights


def main():
    x = jnp.linspace(0.0, 10.0, POINTS)
    y, new = jnp.sin(x), jnp.linspace(0.0, 10.0, 640).reshape(40, 16)
    means = []
    for n in range(40):
        means.append(predict(x, y, new[n]))  # JX208
    print(f"mean {jnp.concatenate(means).mean():.3f}")


if __name__ == "__main__":
    main()
