# a bootstrap particle filter of stochastic volatility, resampled with jax.random.categorical
import jax
import jax.numpy as jnp
import numpy as np

PARTICLES, DAYS = 1000, 60


@jax.jit
def log_likelihood(theta, returns, key):
    mean, persistence, scale = theta[0], jax.nn.sigmoid(theta[1]), jnp.exp(theta[2])

    def day(carry, observed):
        x, key = carry
        key, k_move, k_resample = jax.random.split(key, 3)
        x = mean + persistence * (x - mean) + scale * jax.random.normal(k_move, (PARTICLES,))
        log_w = -0.5 * (x + observed**2 * jnp.exp(-x))
        chosen = jax.random.categorical(k_resample, log_w, shape=(PARTICLES,))  # must: JX211 first ~ categorical
        return (x[chosen], key), jax.nn.logsumexp(log_w) - jnp.log(PARTICLES)

    (_, _), logs = jax.lax.scan(day, (jnp.full(PARTICLES, mean), key), returns)
    return logs.sum()


rng = np.random.default_rng(0)
returns = rng.normal(size=DAYS).astype(np.float32)
theta, key, found = np.array([0.0, 2.0, -1.0], np.float32), jax.random.key(1), []
for n in range(8):
    proposal = theta + 0.05 * rng.normal(size=3).astype(np.float32)
    found.append(log_likelihood(proposal, returns, jax.random.fold_in(key, n)))
print(np.round(np.asarray(jnp.stack(found)), 1))
