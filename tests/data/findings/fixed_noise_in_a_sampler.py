# a density that simulates with fixed random numbers, in the loops of a sampler: it must stay the same density
import blackjax
import jax
import jax.numpy as jnp

KEY = jax.random.key(0)


def simulated(growth):
    def day(state, _):
        infected, key = state
        key, sub = jax.random.split(key)
        infected = infected + growth * infected * (1 - infected) + 0.01 * jax.random.uniform(sub)
        return (infected, key), infected

    return jax.lax.scan(day, (0.05, KEY), None, length=20)[1]


observed = simulated(0.35)


def log_density(growth):
    return -0.5 * jnp.sum(((simulated(growth) - observed) / 0.05) ** 2)


sampler = blackjax.nuts(log_density, step_size=0.01, inverse_mass_matrix=jnp.array([1.0]))
state = jax.jit(sampler.init)(jnp.array(0.3))
step = jax.jit(sampler.step)
for key in jax.random.split(jax.random.key(1), 20):  # may: JX133
    state, _ = step(key, state)
print(state.position)
