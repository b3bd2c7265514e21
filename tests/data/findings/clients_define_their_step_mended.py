# Mended: all clients call one step, which gets the learning rate as an argument
# applies: fix-define-for-all-objects
import jax
import jax.numpy as jnp
import numpy as np
import optax


def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["hidden"]) @ params["out"] - y) ** 2)


@jax.jit
def step(params, state, x, y, rate):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    updates, state = optax.sgd(rate, momentum=0.9).update(gradients, state)
    return optax.apply_updates(params, updates), state, value


class Client:
    def __init__(self, x, y, rate):
        self.x, self.y, self.rate = x, y, rate

    def train(self, params):
        state = optax.sgd(self.rate, momentum=0.9).init(params)
        for i in range(0, 96, 32):
            params, state, value = step(params, state, self.x[i : i + 32], self.y[i : i + 32], self.rate)
        return params, value


rng = np.random.default_rng(0)
weights = rng.normal(size=20).astype(np.float32)
clients = []
for rate in np.linspace(0.01, 0.1, 10, dtype=np.float32):
    x = rng.normal(size=(96, 20)).astype(np.float32)
    clients.append(Client(x, x @ weights, rate))
params = {"hidden": 0.1 * rng.normal(size=(20, 64)), "out": 0.1 * rng.normal(size=64)}
params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)
for step_number in range(3):
    for client in clients:
        params, value = client.train(params)
    print(step_number, value)
