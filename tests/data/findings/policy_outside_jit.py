# an agent asks its network for each action outside jit; the network is trained by a jitted function
import random

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([32, 32, 2])(x)))  # must: JX605 ~ the function that policy_outside_jit.py:35 calls.*jax.jit\(net.apply\)
params = net.init(jax.random.key(0), jnp.zeros((1, 4)))  # may: JX133


@jax.jit
def update(params, states, actions, rewards):
    def loss(p):
        q = net.apply(p, states)[jnp.arange(len(actions)), actions]
        return jnp.mean((q - rewards) ** 2)

    return jax.tree.map(lambda p, g: p - 0.01 * g, params, jax.grad(loss)(params))


class Pole:
    def step(self, action):
        self.state = 0.99 * self.state + 0.02 * np.roll(self.state, 1) + 0.01 * (action - 0.5)
        return self.state, float(self.state[0])


random.seed(0)
env, memory = Pole(), []
env.state = state = np.full(4, 0.05)
for t in range(1500):
    if random.random() < 0.1:
        action = random.randint(0, 1)
    else:
        action = int(jnp.argmax(net.apply(params, state[None])[0]))  # may: JX601
    before = state
    state, reward = env.step(action)
    memory.append((before, action, reward))
    if t % 50 == 49:
        states, actions, rewards = map(np.array, zip(*random.sample(memory, 32)))
        params = update(params, states.astype("float32"), actions, rewards.astype("float32"))
print(state)
