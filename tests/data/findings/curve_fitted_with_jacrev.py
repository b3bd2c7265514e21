# Levenberg-Marquardt with 4 parameters and 600 residuals: the Jacobian is computed in reverse mode
import jax
import jax.numpy as jnp
import numpy as np


def model(theta, x):
    amplitude, rate, shift, offset = theta
    return amplitude * jnp.exp(-rate * (x - shift) ** 2) + offset


def residuals(theta, x, y):
    return model(theta, x) - y


@jax.jit
def lm_step(theta, damping, x, y):
    r = residuals(theta, x, y)
    jacobian = jax.jacobian(residuals)(theta, x, y)  # must: JX210 first ~ 600 backward passes, .* forward mode needs 4
    hessian = jacobian.T @ jacobian
    new = theta - jnp.linalg.solve(hessian + damping * jnp.diag(jnp.diag(hessian)), jacobian.T @ r)
    better = jnp.sum(residuals(new, x, y) ** 2) < r @ r
    return jnp.where(better, new, theta), jnp.where(better, 0.3 * damping, 4.0 * damping)


rng = np.random.default_rng(0)
x = np.linspace(-2.0, 2.0, 600).astype(np.float32)
y = (1.5 * np.exp(-2.0 * (x - 0.3) ** 2) + 0.1 + 0.02 * rng.standard_normal(600)).astype(np.float32)
theta, damping = jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.float32(1e-2)
for _ in range(30):
    theta, damping = lm_step(theta, damping, x, y)
print(theta.round(2))
