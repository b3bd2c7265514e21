# Mended: a scan over the observations, and jax.random.choice
# applies: fix-scan-over, scan-stack-first, fix-choice
import jax
import jax.numpy as jnp
from jax import random

N, T = 800, 30
observed = jnp.cumsum(random.normal(random.key(0), (T,)))


@jax.jit
def likelihood(key, decay, observed):
    def filtered(state, y):
        key, particles = state
        key, noise, order = random.split(key, 3)
        particles = decay * particles + random.normal(noise, (N,))
        weights = -0.5 * (y - particles) ** 2
        gain = jax.scipy.special.logsumexp(weights) - jnp.log(N)
        chosen = random.choice(order, N, (N,), p=jax.nn.softmax(weights))
        return (key, particles[chosen]), gain

    return jax.lax.scan(filtered, (key, jnp.zeros(N)), observed)[1].sum()


key, decay = random.key(1), jnp.float32(0.5)
current = likelihood(random.key(2), decay, observed)
for _ in range(20):
    key, proposal, filtering, accepting = random.split(key, 4)
    new = decay + 0.1 * random.normal(proposal)
    value = likelihood(filtering, new, observed)
    accepted = jnp.log(random.uniform(accepting)) < value - current
    decay, current = jnp.where(accepted, new, decay), jnp.where(accepted, value, current)
print(float(decay))
