# simulated annealing: each iteration splits the key and computes the temperature outside jit, and collects the state
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def propose(key, x, temperature):
    move, accept = jax.random.split(key)
    candidate = x + 0.3 * jax.random.normal(move, x.shape)
    worse = jnp.sum(candidate**2) - jnp.sum(x**2)
    keep = jax.random.uniform(accept) < jnp.exp(-worse / temperature)
    return jnp.where(keep, candidate, x)


key, x, temperature = jax.random.key(7), jnp.full(5, 3.0, jnp.float32), jnp.float32(2.0)
visited = []
for _ in range(5000):
    key, step = jax.random.split(key)  # must: JX605 first ~ jax\.lax\.scan
    temperature = temperature * 0.999
    x = propose(step, x, temperature)
    visited.append(np.asarray(x))
print(np.stack(visited).mean(0).round(3))
