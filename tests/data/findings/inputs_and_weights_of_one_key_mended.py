# the inputs and the weights have keys of their own
# applies: fix-split-key
import jax
import jax.numpy as jnp


def init(size, key):
    return 0.1 * jax.random.normal(key, (size,))


@jax.jit
def output(weights, inputs):
    return jnp.tanh(inputs @ weights.reshape(4, 3))


key1, key2 = jax.random.split(jax.random.key(0))
inputs = jax.random.normal(key1, (4,))
weights = init(12, key2)
print(output(weights, inputs))
