# applies: fix-equal-ranks
# Particles in a box: the masses are a column, to scale forces of three components
import jax
import jax.numpy as jnp

N = 200
first, second = jax.random.split(jax.random.key(1))
position = jax.random.uniform(first, (N, 3))
velocity = jnp.zeros((N, 3))
mass = jnp.where(jax.random.uniform(second, (N, 1)) < 0.5, 1.0, 4.0)


def force(position):
    return -2.0 * (position - 0.5)


@jax.jit
def simulate(position, velocity, mass):
    def step(state, _):
        position, velocity = state
        velocity = velocity + 0.01 * force(position) / mass
        position = position + 0.01 * velocity
        kinetic = jnp.sum(0.5 * mass[:, 0] * jax.vmap(jnp.dot)(velocity, velocity))
        return (position, velocity), kinetic

    return jax.lax.scan(step, (position, velocity), length=100)


for _ in range(3):
    (position, velocity), kinetic = simulate(position, velocity, mass)
    print(f"{kinetic[-1]:.3f}")
