# federated learning: each client defines and jits a training step of its own
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Client:
    def __init__(self, x, y, rate):
        self.x, self.y = x, y
        self.optimizer = optax.sgd(rate, momentum=0.9)

        def loss(params, x, y):
            return jnp.mean((jnp.tanh(x @ params["hidden"]) @ params["out"] - y) ** 2)

        @jax.jit
        def step(params, state, x, y):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            updates, state = self.optimizer.update(gradients, state)
            return optax.apply_updates(params, updates), state, value

        self.step = step

    def train(self, params):
        state = self.optimizer.init(params)
        for i in range(0, 96, 32):
            params, state, value = self.step(params, state, self.x[i : i + 32], self.y[i : i + 32])  # must: JX110 first ~ outside of the class
        return params, value


rng = np.random.default_rng(0)
weights = rng.normal(size=20).astype(np.float32)
clients = []
for rate in np.linspace(0.01, 0.1, 10, dtype=np.float32):
    x = rng.normal(size=(96, 20)).astype(np.float32)
    clients.append(Client(x, x @ weights, rate))
params = {"hidden": 0.1 * rng.normal(size=(20, 64)), "out": 0.1 * rng.normal(size=64)}
params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)
for step in range(3):
    for client in clients:
        params, value = client.train(params)
    print(step, value)
