# a kernel splits its key in two and in three: the second part is the same, so the mass and the step size belong together
import jax
import jax.numpy as jnp


@jax.jit
def kernel(q, key):
    _, sub = jax.random.split(key)
    mass = jnp.exp(0.3 * jax.random.normal(sub, q.shape))
    keys = jax.random.split(key, 3)
    momentum = jax.random.normal(keys[0], q.shape) * jnp.sqrt(mass)
    size = jax.random.uniform(keys[1], q.shape, minval=0.8, maxval=1.2)  # must: JX137 ~ key is split several times.*split.key..1..*split key only once
    return q + size * momentum / mass


@jax.jit
def sample(keys):
    return jax.lax.scan(lambda q, key: (kernel(q, key), q), jnp.zeros(3), keys)[1]


print(sample(jax.random.split(jax.random.key(1), 300)).mean())
