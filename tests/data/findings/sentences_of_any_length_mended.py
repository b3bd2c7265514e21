# Mended: padded to one length, with a mask
# applies: fix-few-sizes
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def encode(table, tokens, mask):
    return (jnp.tanh(table[tokens]) * mask[:, None]).sum(0) / mask.sum()


rng = np.random.default_rng(0)
table = jnp.ones((100, 32))
for n in rng.integers(3, 40, 14):
    tokens = np.zeros(40, int)
    tokens[:n] = rng.integers(0, 100, n)
    print(encode(table, tokens, (np.arange(40) < n).astype("float32")).sum())
