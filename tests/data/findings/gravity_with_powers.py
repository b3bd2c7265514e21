# an N-body simulation: the softened distance is raised to -1.5
import jax
import jax.numpy as jnp
import numpy as np

G, SOFTENING, DT = 1.0, 0.1, 0.01


def acceleration(position, mass):
    apart = position[None, :, :] - position[:, None, :]
    squared = apart[..., 0] ** 2 + apart[..., 1] ** 2 + apart[..., 2] ** 2 + SOFTENING**2
    inverse = squared**-1.5  # must: JX211 first ~ the power -1.5 of many numbers
    return G * jnp.einsum("ijk,ij,j->ik", apart, inverse, mass)


@jax.jit
def step(state):
    position, velocity, mass = state
    velocity = velocity + DT / 2 * acceleration(position, mass)
    position = position + DT * velocity
    velocity = velocity + DT / 2 * acceleration(position, mass)
    return position, velocity, mass


rng, n = np.random.default_rng(0), 1500
position = rng.normal(size=(n, 3)).astype(np.float32)
state = jax.device_put((position, np.zeros_like(position), np.full(n, 1 / n, np.float32)))
for _ in range(40):
    state = step(state)  # may: JX506
print(jnp.abs(state[0]).max())
