"""An agent whose updates run outside jit, in a method that assigns the new parameters to the agent."""

import jax
import jax.numpy as jnp
import numpy as np
import optax


@jax.jit
def create(key):
    k1, k2, k3 = jax.random.split(key, 3)
    actor = {"w": jax.random.normal(k1, (6, 32)), "v": jax.random.normal(k2, (32, 2))}
    return actor, {"c": jax.random.normal(k3, (6, 5))}


@jax.jit
def gradients(actor, critic, x):
    def loss(actor, critic):
        return jnp.mean((jnp.tanh(x @ actor["w"]) @ actor["v"]) ** 2) + jnp.mean((x @ critic["c"] - 1) ** 2)

    return jax.grad(loss, (0, 1))(actor, critic)


class Agent:
    def __init__(self, key):
        self.actor, self.critic = create(key)
        self.tx, self.slow = optax.adam(1e-2), optax.rmsprop(1e-3)
        self.actor_state = jax.jit(self.tx.init)(self.actor)
        self.critic_state = jax.jit(self.slow.init)(self.critic)

    def train(self, x):
        actor_grads, critic_grads = gradients(self.actor, self.critic, x)
        updates, self.actor_state = self.tx.update(actor_grads, self.actor_state)  # must: JX133 first ~ into a new function, and apply jit to it.* self.actor_state
        self.actor = optax.apply_updates(self.actor, updates)
        updates, self.critic_state = self.slow.update(critic_grads, self.critic_state)
        self.critic = optax.apply_updates(self.critic, updates)


agent = Agent(jax.random.key(0))
rng = np.random.default_rng(0)
for _ in range(30):
    agent.train(rng.normal(size=(64, 6)).astype(np.float32))
print(float(jnp.abs(agent.actor["v"]).max()))
