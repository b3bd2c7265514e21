# a curriculum: many steps with short sequences, then many with long ones
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, times, ys):
    def one(h, y):
        h = jnp.tanh(h @ w + y)
        return h, h

    def loss(w):
        return jnp.mean((jax.lax.scan(one, jnp.zeros(8) + times[-1], ys)[1] - ys) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


times, w = np.linspace(0, 4, 33).astype("float32"), jnp.eye(8)
data = np.random.default_rng(0).normal(size=(33, 8)).astype("float32")
for length, steps in [(9, 30), (33, 60)]:
    for step in range(steps):
        ys = data[:length]
        w = train_step(w, times[:length], ys)
print(w.sum())
