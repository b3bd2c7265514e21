# the last batch is padded, and a mask leaves the padding out
# applies: fix-pad-odd-batch
import jax
import jax.numpy as jnp
import numpy as np

w = jnp.ones((64, 64))


@jax.jit
def validate(w, x, mask):
    for _ in range(3):
        x = jnp.tanh(x @ w) @ w.T
    return jnp.sum(x**2, where=mask[:, None])


examples = np.random.default_rng(0).normal(size=(31, 64)).astype("float32")
loss = 0.0
for i in range(0, 31, 16):
    batch = examples[i : i + 16]
    padded = np.pad(batch, ((0, 16 - len(batch)), (0, 0)))
    loss += float(validate(w, padded, np.arange(16) < len(batch)))
print(loss / len(examples))
