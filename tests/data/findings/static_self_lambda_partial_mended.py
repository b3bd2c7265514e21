# applies: fix-jit-partial-once, fix-define-at-module-level, fix-function-without-self
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnums=2)
def forward(w, x, act):
    return act(x @ w).sum()


gradient = jax.jit(jax.grad(forward), static_argnums=2)


@jax.jit
def apply(w, g, lr):
    return w - lr * g


class Trainer:
    def __init__(self):
        self.w = jnp.ones((64, 64))
        self.lr = 0.1

    def fit(self, data):
        for i, x in enumerate(data):
            g = gradient(self.w, x, jnp.tanh)
            self.w = apply(self.w, g, self.lr)
            self.lr *= 0.9
            v = forward(self.w, x, jnp.tanh)
            print(i, v)


data = [jnp.full((8, 64), float(i)) for i in range(6)]
Trainer().fit(data)
Trainer().fit(data[:2])
