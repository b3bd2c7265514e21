# Mended: jnp.stack joins the actions
# applies: fix-stack-arrays
import random
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np

BATCH = 32


@jax.jit
def policy(w, state):
    return jnp.argmax(state @ w)


@jax.jit
def update(w, states, actions):
    return w - 1e-3 * jax.grad(lambda w: ((states @ w)[jnp.arange(BATCH), actions] ** 2).mean())(w)


class Buffer:
    def __init__(self):
        self.kept = deque(maxlen=1000)

    def push(self, state, action):
        self.kept.append((state, action))

    def sample(self):
        states, actions = zip(*random.sample(self.kept, BATCH))
        return np.stack(states), jnp.stack(actions)  # may: JX605, JX608


buffer = Buffer()
rng = np.random.default_rng(0)
random.seed(0)
w = jnp.asarray(rng.normal(size=(8, 4)).astype("f4"))
for i in range(3000):
    state = rng.normal(size=8).astype("f4")
    buffer.push(state, policy(w, state))
    if i >= BATCH:
        w = update(w, *buffer.sample())
print(float(w.sum()))
