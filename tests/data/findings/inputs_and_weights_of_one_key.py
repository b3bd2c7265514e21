# one key draws the inputs, and the weights in a function: the first weights are the inputs times 0.1
import jax
import jax.numpy as jnp


def init(size, key):
    return 0.1 * jax.random.normal(key, (size,))


@jax.jit
def output(weights, inputs):
    return jnp.tanh(inputs @ weights.reshape(4, 3))


key = jax.random.key(0)
inputs = jax.random.normal(key, (4,))
weights = init(12, key)  # must: JX137 first ~ jax.random.normal and init. draw from the same key
print(output(weights, inputs))
