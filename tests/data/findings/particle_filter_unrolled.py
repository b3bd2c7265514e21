# particle MCMC: the filter is a Python loop inside jit, and resamples with categorical
import jax
import jax.numpy as jnp
from jax import random

N, T = 800, 30
observed = jnp.cumsum(random.normal(random.key(0), (T,)))


@jax.jit
def likelihood(key, decay, observed):
    particles, total = jnp.zeros(N), 0.0
    for t in range(T):
        key, noise, order = random.split(key, 3)  # must: JX202 ~ jax\.lax\.scan\(body, state, observed\)
        particles = decay * particles + random.normal(noise, (N,))
        weights = -0.5 * (observed[t] - particles) ** 2
        total += jax.scipy.special.logsumexp(weights) - jnp.log(N)
        particles = particles[random.categorical(order, weights, shape=(N,))]  # must: JX211 first
    return total


key, decay = random.key(1), jnp.float32(0.5)
current = likelihood(random.key(2), decay, observed)
for _ in range(20):
    key, proposal, filtering, accepting = random.split(key, 4)
    new = decay + 0.1 * random.normal(proposal)
    value = likelihood(filtering, new, observed)
    accepted = jnp.log(random.uniform(accepting)) < value - current
    decay, current = jnp.where(accepted, new, decay), jnp.where(accepted, value, current)
print(float(decay))
