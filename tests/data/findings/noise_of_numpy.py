# noise drawn with NumPy inside a jitted step: the same in each call
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w, x):
    noise = np.random.normal(size=x.shape).astype("float32")  # must: JX134
    return w - 0.1 * jax.grad(lambda w: jnp.mean(((x + noise) @ w) ** 2))(w)


w = jnp.ones((16, 4))
for _ in range(5):
    w = step(w, jnp.ones((8, 16)))
print(w.sum())
