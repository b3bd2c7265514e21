# A particle filter stacks all particles of all steps, and then takes their mean
import jax
import jax.numpy as jnp

PARTICLES, STATES, STEPS = 20_000, 6, 120


@jax.jit
def estimate(key, observations):
    def step(carry, observation):
        key, particles = carry
        key, move, draw = jax.random.split(key, 3)
        particles = 0.98 * particles + 0.1 * jax.random.normal(move, particles.shape)
        weights = jax.nn.softmax(-jnp.sum((particles - observation) ** 2, 1))
        places = (jnp.arange(PARTICLES) + jax.random.uniform(draw)) / PARTICLES
        particles = particles[jnp.searchsorted(jnp.cumsum(weights), places, method="sort")]
        return (key, particles), particles

    start = key, jnp.zeros((PARTICLES, STATES))
    _, history = jax.lax.scan(step, start, observations)  # must: JX514 first ~ only reduces
    return history.mean(axis=1)


means = estimate(jax.random.key(0), jnp.sin(jnp.linspace(0.0, 6.0, STEPS * STATES)).reshape(STEPS, STATES))
print(means.shape, float(jnp.abs(means).mean()))
