# applies: fix-jit-step-function
# A transform halves its array again and again, and is jitted
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def haar(x):
    details = []
    while x.shape[0] > 1:
        details.append((x[0::2] - x[1::2]) / 2); x = (x[0::2] + x[1::2]) / 2
    return jnp.concatenate([x, *details[::-1]])


total = 0.0
for i in range(20):
    x = jnp.asarray(np.random.default_rng(i).normal(size=1024).astype(np.float32))
    total += jnp.abs(haar(x)).sum()
print(float(total) > 0)
