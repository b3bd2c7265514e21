# all chains of a sampler are moved with the same key, so that they are not independent
import blackjax
import jax
import jax.numpy as jnp

CHAINS = 8


def log_density(position):
    return -0.5 * jnp.sum(position["x"] ** 2) - 0.1 * jnp.sum(position["x"] ** 4)


kernel = blackjax.nuts(log_density, step_size=0.2, inverse_mass_matrix=jnp.ones(4))


@jax.jit
def sample(states, key):
    def one(states, key):
        states, info = jax.vmap(kernel.step, in_axes=(None, 0))(key, states)  # must: JX139 ~ same random numbers
        return states, (states.position["x"], info.acceptance_rate)

    return jax.lax.scan(one, states, jax.random.split(key, 100))


start = jax.random.normal(jax.random.key(0), (CHAINS, 4))
states = jax.jit(jax.vmap(kernel.init))({"x": start})
for round in range(4):
    states, (x, accepted) = sample(states, jax.random.fold_in(jax.random.key(1), round))
    print(round, float(accepted.mean()), float(x.std()))
