# applies: fix-jit-around-read
# A policy plays in a simulator in Python; its key is split in the jitted function
# may: JX601 note
import jax
import jax.numpy as jnp
import numpy as np


class Cart:
    def reset(self):
        self.state, self.steps = np.zeros(4, np.float32), 0
        return self.state

    def step(self, action):
        self.state = (self.state * 0.9 + (action - 0.5)).astype(np.float32)
        self.steps += 1
        return self.state, self.steps >= 200


@jax.jit
def policy(key, w, state):
    key, subkey = jax.random.split(key)
    return key, jax.random.categorical(subkey, jnp.tanh(state @ w))


cart, key, w, total = Cart(), jax.random.key(0), jnp.full((4, 2), 0.1), 0.0
for episode in range(60):
    state, done = cart.reset(), False
    while not done:
        key, action = policy(key, w, state)
        state, done = cart.step(int(action))
    total += float(state.sum())
print(f"{total:.2f}")
