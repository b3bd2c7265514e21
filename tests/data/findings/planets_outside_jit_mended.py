# the step of the simulation is jitted
# applies: fix-jit-iteration, fix-jit-part-of-method
import jax
import jax.numpy as jnp


def acceleration(position, mass):
    away = position[None] - position[:, None]
    distance = jnp.sqrt(jnp.sum(away**2, axis=-1) + 1e-2)
    return jnp.sum(mass[None, :, None] * away / distance[..., None] ** 3, axis=1)


@jax.jit
def step(position, velocity, mass, dt):
    velocity = velocity + 0.5 * dt * acceleration(position, mass)
    position = position + dt * velocity
    return position, velocity + 0.5 * dt * acceleration(position, mass)


@jax.jit
def energy(velocity, mass):
    return 0.5 * jnp.sum(mass[:, None] * velocity**2)


def simulate(steps, n=24):
    k1, k2 = jax.random.split(jax.random.key(0))
    position, velocity = jax.random.normal(k1, (n, 3)), 0.1 * jax.random.normal(k2, (n, 3))
    mass = jnp.full(n, 1 / n)
    energies = []
    for i in range(steps):
        position, velocity = step(position, velocity, mass, 0.01)
        if i % 50 == 0:
            energies.append(energy(velocity, mass))
    return jnp.stack(energies)


print(f"{float(simulate(1200)[-1]):.4f}")
