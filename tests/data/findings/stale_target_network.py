# an agent's jitted update reads the target network from self, and the target is renewed after every 20 updates
from functools import partial

import jax
import jax.numpy as jnp


class Agent:
    def __init__(self, key):
        self.params = jax.random.normal(key, (8, 3))
        self.target = self.params
        self.updates = 0

    @partial(jax.jit, static_argnums=0)
    def _update(self, params, seen, action, reward):
        best = (seen @ self.target).max(-1)

        def loss(params):
            value = jnp.take_along_axis(seen @ params, action[:, None], 1)[:, 0]
            return jnp.mean((value - reward - 0.9 * best) ** 2)

        return params - 0.05 * jax.grad(loss)(params)

    def learn(self, seen, action, reward):
        self.params = self._update(self.params, seen, action, reward)
        self.updates += 1
        if self.updates % 20 == 0:
            self.target = self.params  # must: JX131 first ~ self\.target


agent = Agent(jax.random.key(0))
seen = jax.random.normal(jax.random.key(1), (32, 8))
action, reward = jnp.zeros(32, "int32"), jnp.ones(32)
for _ in range(100):
    agent.learn(seen, action, reward)
print(agent.params.sum())
