# the fixed point is iterated by lax.while_loop, and its derivative is jitted
# applies: fix-loop-until-value, fix-jit-this-call, fix-jit-around-call, fix-jit-around
import functools

import jax
import jax.numpy as jnp


def fixed_point(theta, hidden):
    matrix = jnp.tanh(jnp.outer(theta, theta)) / hidden

    def turn(state):
        z, norm, _ = state
        z = jnp.sin(matrix @ z + theta)
        return z, jnp.sqrt(jnp.sum(z**2)), norm

    def goes_on(state):
        return jnp.abs(state[1] - state[2]) >= 1e-6

    return jax.lax.while_loop(goes_on, turn, (jnp.zeros(hidden), jnp.inf, 0.0))[0]


derivative = jax.jit(jax.jacfwd(fixed_point), static_argnums=1)


@jax.jit
def updated(theta, slope):
    return theta - 0.01 * slope.sum(0)


theta = jnp.linspace(0.1, 0.9, 12)
for epoch in range(4):
    slope = derivative(theta, 12)
    theta = updated(theta, slope)
print(theta.sum())
