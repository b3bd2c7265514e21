# a recurrence of 40 steps is written as a Python loop inside jit
import jax
import jax.numpy as jnp


@jax.jit
def simulate(state, forces):
    out = []
    for t in range(40):
        x, v = state
        v = 0.99 * v + 0.1 * (forces[t] - jnp.sin(x))  # must: JX202 first
        state = (x + 0.1 * v, v)
        out.append(state[0])
    return jnp.stack(out)


for i in range(3):
    print(simulate((jnp.zeros(4), jnp.ones(4)), jnp.full((40, 4), 0.1 * i)).mean())
