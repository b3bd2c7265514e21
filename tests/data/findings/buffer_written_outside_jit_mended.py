# a jitted function writes into the donated buffer
# applies: fix-write-in-jit, fix-donate-written
import functools

import jax
import jax.numpy as jnp

CAPACITY, SIZE = 100_000, 64


class Buffer:
    def __init__(self):
        self.observations = jnp.zeros((CAPACITY, SIZE))
        self.rewards = jnp.zeros(CAPACITY)
        self.at = 0

    def add(self, observation, reward):
        self.observations, self.rewards = write(
            self.observations, self.rewards, self.at, observation, reward
        )
        self.at = (self.at + 1) % CAPACITY


@functools.partial(jax.jit, donate_argnums=(0, 1))
def write(observations, rewards, at, observation, reward):
    return observations.at[at].set(observation), rewards.at[at].set(reward)


@jax.jit
def environment(state, key, i):
    state = jnp.tanh(state + 0.1 * jax.random.normal(jax.random.fold_in(key, i), state.shape))
    return state, -jnp.sum(state**2)


buffer, state, key = Buffer(), jnp.zeros(SIZE), jax.random.key(0)
for i in range(700):
    state, reward = environment(state, key, i)
    buffer.add(state, reward)
print(buffer.at, f"{float(buffer.rewards.sum()):.2f}")
