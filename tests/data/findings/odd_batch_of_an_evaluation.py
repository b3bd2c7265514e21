# an evaluation whose last batch is smaller: to leave it out would change the result
# never: drop the smaller batch
import jax
import jax.numpy as jnp
import numpy as np

w = jnp.ones((64, 64))


@jax.jit
def validate(w, x):
    for _ in range(3):
        x = jnp.tanh(x @ w) @ w.T
    return jnp.sum(x**2)


examples = np.random.default_rng(0).normal(size=(31, 64)).astype("float32")
loss = 0.0
for i in range(0, 31, 16):
    loss += float(validate(w, examples[i : i + 16]))  # must: JX101 first ~ pad x to
print(loss / len(examples))
