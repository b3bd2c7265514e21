# A lambda is jitted in the body of a function and of a loop, and each call has arrays of another size
import jax
import jax.numpy as jnp
import numpy as np


def score(w, x):
    error = jax.jit(lambda w, x: jnp.mean((x @ w) ** 2))
    return error(w, x)  # must: JX110 first ~ recompiles: pad x to the next of a few sizes


def make_norm(scale):
    return jax.jit(lambda x: scale * jnp.sqrt(jnp.sum(x**2)))


w, total = np.ones(8, np.float32), 0.0
for n in (11, 20, 14, 32, 17):
    x = np.ones((n, 8), np.float32)
    total += float(score(w, x))
    norm = make_norm(2.0)
    total += float(norm(x))  # must: JX110 ~ recompiles: pad x to the next of a few sizes
print(total)
