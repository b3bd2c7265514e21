# never: frozen
from functools import partial

import jax
import jax.numpy as jnp


def forward(w, x, act):
    return act(x @ w).sum()


class Trainer:
    def __init__(self):
        self.w = jnp.ones((64, 64))
        self.lr = 0.1

    def fit(self, data):
        for i, x in enumerate(data):
            g = jax.jit(lambda w: jax.grad(forward)(w, x, jnp.tanh))(self.w)  # must: JX110
            self.w = self.apply(self.w, g, self.lr)  # must: JX108
            self.lr *= 0.9
            v = jax.jit(partial(forward, act=jnp.tanh))(self.w, x)  # must: JX110
            print(i, v)

    @partial(jax.jit, static_argnums=0)
    def apply(self, w, g, lr):
        return w - lr * g


data = [jnp.full((8, 64), float(i)) for i in range(6)]
Trainer().fit(data)
Trainer().fit(data[:2])
