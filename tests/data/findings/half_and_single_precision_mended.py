# Mended: float32 for all of them
# applies: fix-one-dtype
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def loss(w, x):
    return ((x @ w) ** 2).mean()


w = jnp.ones(16)
files = [np.ones((8, 16), "float16"), np.ones((8, 16), "float32")] * 3
for x in files:
    print(loss(w, x.astype("float32")))
