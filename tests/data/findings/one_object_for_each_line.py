# two updates of one factory, and two trainers of one class: each object is compiled once, and called at a line of its own
import jax
import jax.numpy as jnp


def make_update(rate):
    @jax.jit
    def update(w, x):
        return w - rate * x.T @ (x @ w)

    return update


class Trainer:
    def __init__(self, model):
        self.model = model
        self.step = jax.jit(self.improve)

    def improve(self, w, x):
        return w - 0.1 * jax.grad(lambda w: (self.model(x @ w) ** 2).mean())(w)

    def fit(self, w, x):
        for step in range(5):
            w = self.step(w, x)
        return w


fast, slow = make_update(0.1), make_update(0.001)
w = v = jnp.zeros((16, 4), jnp.float32)
x = jnp.zeros((8, 16), jnp.float32)
for epoch in range(5):
    w = fast(w, x)
    v = slow(v, x)
w = Trainer(jnp.tanh).fit(w, x)
v = Trainer(jax.nn.relu).fit(v, x)
