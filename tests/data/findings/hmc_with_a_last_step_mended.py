# hmc_with_a_last_step, with a fori_loop and jnp.where
# applies: fix-scan, fix-scan-and-measure, fix-tests-of-index
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 6)).astype("float32"), rng.integers(0, 2, 200).astype("float32")
STEPS = 40


def log_density(b):
    logits = X @ b
    return jnp.sum(y * logits - jnp.logaddexp(0.0, logits)) - 0.5 * jnp.sum(b**2)


def leapfrog(q, p):
    p = p + 0.01 * jax.grad(log_density)(q)

    def body(i, state):
        q, p = state
        q = q + 0.02 * p
        p = p + jnp.where(i < STEPS - 1, 0.02, 0.01) * jax.grad(log_density)(q)
        return q, p

    return jax.lax.fori_loop(0, STEPS, body, (q, p))


@jax.jit
def sample(q, key):
    first, second = jax.random.split(key)
    p = jax.random.normal(first, q.shape)
    new, after = leapfrog(q, p)
    change = log_density(new) - log_density(q) - 0.5 * (jnp.sum(after**2) - jnp.sum(p**2))
    return jnp.where(jnp.log(jax.random.uniform(second)) < change, new, q)


q, keys = jnp.zeros(6), jax.random.split(jax.random.key(0), 200)
for key in np.asarray(jax.random.key_data(keys)):
    q = sample(q, jax.random.wrap_key_data(key))
print(q)
