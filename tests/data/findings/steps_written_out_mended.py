# Mended: jax.lax.scan
# applies: fix-scan-over, scan-collects
import jax
import jax.numpy as jnp


@jax.jit
def simulate(state, forces):
    def step(state, force):
        x, v = state
        v = 0.99 * v + 0.1 * (force - jnp.sin(x))
        x = x + 0.1 * v
        return (x, v), x

    return jax.lax.scan(step, state, forces)[1]


for i in range(3):
    print(simulate((jnp.zeros(4), jnp.ones(4)), jnp.full((40, 4), 0.1 * i)).mean())
