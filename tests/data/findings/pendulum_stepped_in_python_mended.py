# applies: fix-scan-loop
import jax
import jax.numpy as jnp


def acceleration(angle, velocity, damping):
    return -9.81 * jnp.sin(angle) - damping * velocity


def leapfrog(state, damping):
    angle, velocity = state
    half = velocity + 0.005 * acceleration(angle, velocity, damping)
    angle = angle + 0.01 * half
    return angle, half + 0.005 * acceleration(angle, half, damping)


@jax.jit
def simulate(state):
    def body(state, _):
        state = leapfrog(state, 0.1)
        return state, state[0]

    return jax.lax.scan(body, state, length=60_000)


state, trace = simulate((jnp.linspace(0.1, 2.0, 8), jnp.zeros(8)))
print(len(trace), trace[-1].round(4))
