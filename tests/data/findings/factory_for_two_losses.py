# a factory makes one update for each of two losses, and one class has the step of two agents
from functools import partial

import jax
import jax.numpy as jnp


def absolute(w, x):
    return jnp.abs(x @ w).mean()


def squared(w, x):
    return ((x @ w) ** 2).mean()


def make_update(loss):
    @jax.jit
    def update(w, x):
        return w - 0.1 * jax.grad(loss)(w, x)

    return update


def descend(w, x, loss):
    return w - 0.1 * jax.grad(loss)(w, x)


class Agent:
    def __init__(self):
        self.step = jax.jit(self.improve)

    def improve(self, w, x):
        return w - 0.1 * jax.grad(self.loss)(w, x)


class Actor(Agent):
    loss = staticmethod(absolute)


class Critic(Agent):
    loss = staticmethod(squared)


updates = [make_update(absolute), make_update(squared)]
updates += [jax.jit(partial(descend, loss=absolute)), jax.jit(partial(descend, loss=squared))]
updates += [Actor().step, Critic().step]
w, x = jnp.ones((16, 4)), jnp.ones((8, 16))
for step in range(6):
    for update in updates:
        w = update(w, x)
print(w.shape)
