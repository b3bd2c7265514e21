# 60,000 steps of a small simulation are 60,000 calls of a jitted function; nothing is read between them
import jax
import jax.numpy as jnp


def acceleration(angle, velocity, damping):
    return -9.81 * jnp.sin(angle) - damping * velocity


@jax.jit
def leapfrog(state, damping):
    angle, velocity = state
    half = velocity + 0.005 * acceleration(angle, velocity, damping)
    angle = angle + 0.01 * half
    return angle, half + 0.005 * acceleration(angle, half, damping)


def simulate(steps):
    state = (jnp.linspace(0.1, 2.0, 8), jnp.zeros(8))
    trace = []
    for _ in range(steps):
        state = leapfrog(state, 0.1)  # must: JX608 first ~ whole loop into one jitted function
        trace.append(state[0])
    return trace


trace = simulate(60_000)
print(len(trace), trace[-1].round(4))
