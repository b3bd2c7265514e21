# a replay buffer goes through random indices of JAX; __getitem__ reads each of them as a number
# may: JX605
import collections

import jax
import jax.numpy as jnp
import numpy as np


class Buffer:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.items = collections.deque((rng.normal(size=4), 1.0) for _ in range(500))

    def sample(self, key):
        indices = jax.random.randint(key, (256,), 0, len(self.items))
        batch = [self[i] for i in indices]  # must: JX133 first ~ iterating over the array took
        return [jnp.asarray(np.stack(field)) for field in zip(*batch)]

    def __getitem__(self, i):
        return self.items[i]


@jax.jit
def step(w, observations, rewards):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((observations @ w - rewards) ** 2))(w)


buffer = Buffer()
key = jax.random.key(0)
w = jnp.zeros(4)
for _ in range(300):
    key, drawn = jax.random.split(key)
    w = step(w, *buffer.sample(drawn))
print(w.sum())
