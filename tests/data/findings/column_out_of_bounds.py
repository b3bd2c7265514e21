# The state of a satellite has six columns; the flight path is drawn from a column that is not there
import jax
import jax.numpy as jnp
import numpy as np


def gravity(state):
    r = state[:3]
    return jnp.concatenate([state[3:], -r / jnp.linalg.norm(r) ** 3])


@jax.jit
def fly(state):
    def step(state, _):
        k1 = gravity(state)
        k2 = gravity(state + 0.005 * k1)
        return state + 0.01 * k2, state

    return jax.lax.scan(step, state, length=400)[1]


@jax.jit
def energy(path):
    speed = jnp.sum(path[:, 3:] ** 2, axis=1)
    height = jnp.sqrt(path[:, 0] ** 2 + path[:, 1] ** 2 + path[:, 6] ** 2)  # must: JX308 first ~ index 6
    return jnp.mean(0.5 * speed - 1 / height)


for tilt in np.linspace(0.0, 0.5, 4):
    path = fly(jnp.array([1.0, 0.0, 0.2, 0.0, np.cos(tilt), np.sin(tilt)]))
    last = path[-1, 6]  # must: JX308 ~ index 6
    print(f"{energy(path):.4f} {last:.4f}")
