# Mended: A lambda is jitted in the body of a function and of a loop, and each call has arrays of another size
# applies: fix-define-at-module-level, fix-call-maker-for-each, fix-few-sizes
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def error(w, x, rows):
    return jnp.sum((x @ w) ** 2) / rows


@jax.jit
def norm(scale, x):
    return scale * jnp.sqrt(jnp.sum(x**2))


w, total = np.ones(8, np.float32), 0.0
for n in (11, 20, 14, 32, 17):
    x = np.zeros((32, 8), np.float32)
    x[:n] = 1
    total += float(error(w, x, np.float32(n)))
    total += float(norm(np.float32(2.0), x))
print(total)
