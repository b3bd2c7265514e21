# the key is split once, into a part for each draw
# applies: fix-split-once
import jax
import jax.numpy as jnp


@jax.jit
def kernel(q, key):
    keys = jax.random.split(key, 3)
    mass = jnp.exp(0.3 * jax.random.normal(keys[2], q.shape))
    momentum = jax.random.normal(keys[0], q.shape) * jnp.sqrt(mass)
    size = jax.random.uniform(keys[1], q.shape, minval=0.8, maxval=1.2)
    return q + size * momentum / mass


@jax.jit
def sample(keys):
    return jax.lax.scan(lambda q, key: (kernel(q, key), q), jnp.zeros(3), keys)[1]


print(sample(jax.random.split(jax.random.key(1), 300)).mean())
