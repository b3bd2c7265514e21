# an n-body simulation without any jit: each step starts dozens of operations
# may: JX133
import jax
import jax.numpy as jnp


class System:
    def __init__(self, n, key):
        k1, k2 = jax.random.split(key)
        self.position = jax.random.normal(k1, (n, 3))
        self.velocity = 0.1 * jax.random.normal(k2, (n, 3))
        self.mass = jnp.ones(n) / n

    def acceleration(self):
        away = self.position[None] - self.position[:, None]  # must: JX605|JX133 first
        distance = jnp.sqrt(jnp.sum(away**2, axis=-1) + 1e-2)
        return jnp.sum(self.mass[None, :, None] * away / distance[..., None] ** 3, axis=1)

    def step(self, dt):
        self.velocity = self.velocity + 0.5 * dt * self.acceleration()
        self.position = self.position + dt * self.velocity
        self.velocity = self.velocity + 0.5 * dt * self.acceleration()

    def energy(self):
        kinetic = 0.5 * jnp.sum(self.mass[:, None] * self.velocity**2)
        return kinetic


def simulate(steps):
    system = System(24, jax.random.key(0))
    energies = []
    for i in range(steps):
        system.step(0.01)
        if i % 50 == 0:
            energies.append(system.energy())
    return jnp.stack(energies)


print(f"{float(simulate(1200)[-1]):.4f}")
