"""The Jacobian of 500 residuals with respect to 3 parameters is computed in reverse mode."""

import jax
import jax.numpy as jnp


def residuals(theta, times, seen):
    return theta[0] * jnp.exp(-theta[1] * times) + theta[2] - seen


@jax.jit
def step(theta, times, seen):
    r = residuals(theta, times, seen)
    j = jax.jacrev(residuals)(theta, times, seen)  # JX210
    return theta - jnp.linalg.solve(j.T @ j + 1e-3 * jnp.eye(3), j.T @ r)


def main():
    times = jnp.linspace(0.0, 4.0, 500)
    seen = 2.0 * jnp.exp(-0.7 * times) + 0.3
    theta = jnp.ones(3)
    for _ in range(8):
        theta = step(theta, times, seen)
    print(f"fitted {theta.round(2)}")


if __name__ == "__main__":
    main()
