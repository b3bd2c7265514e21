# a fixed point is iterated until it converges, under jacfwd and outside jit: jit needs lax.while_loop there
import jax
import jax.numpy as jnp


def fixed_point(theta, hidden):
    matrix = jnp.tanh(jnp.outer(theta, theta)) / hidden
    z, before = jnp.zeros(hidden), jnp.inf
    while True:
        z = jnp.sin(matrix @ z + theta)
        norm = jnp.sqrt(jnp.sum(z**2))
        if jnp.abs(norm - before) < 1e-6:
            return z
        before = norm


theta = jnp.linspace(0.1, 0.9, 12)
for epoch in range(4):
    slope = jax.jacfwd(fixed_point)(theta, 12)  # must: JX133 first ~ as a jax\.lax\.while_loop that goes on while ~\(jnp\.abs
    theta = theta - 0.01 * slope.sum(0)
print(theta.sum())
