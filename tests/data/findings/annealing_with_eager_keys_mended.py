# applies: fix-scan-loop
import jax
import jax.numpy as jnp
import numpy as np


def propose(key, x, temperature):
    move, accept = jax.random.split(key)
    candidate = x + 0.3 * jax.random.normal(move, x.shape)
    worse = jnp.sum(candidate**2) - jnp.sum(x**2)
    keep = jax.random.uniform(accept) < jnp.exp(-worse / temperature)
    return jnp.where(keep, candidate, x)


@jax.jit
def anneal(key, x):
    def body(carry, _):
        key, x, temperature = carry
        key, step = jax.random.split(key)
        temperature = temperature * 0.999
        x = propose(step, x, temperature)
        return (key, x, temperature), x

    return jax.lax.scan(body, (key, x, jnp.float32(2.0)), length=5000)


_, visited = anneal(jax.random.key(7), jnp.full(5, 3.0, jnp.float32))
print(np.asarray(visited).mean(0).round(3))
