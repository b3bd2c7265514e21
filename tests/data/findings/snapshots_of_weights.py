# an object keeps a copy of the weights of every second step, to average them at the end
import jax
import jax.numpy as jnp


class Averager:
    def __init__(self, every):
        self.every, self.seen = every, 0
        self.snapshots = []

    def update(self, params):
        self.seen += 1
        if self.seen % self.every == 0:
            self.snapshots.append(jax.tree.map(jnp.copy, params))  # must: JX501 first ~ averager\.snapshots

    def average(self):
        return jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *self.snapshots)


@jax.jit
def train_step(params, x):
    return jax.tree.map(lambda p: p - 1e-4 * jnp.tanh(x @ p).sum() * p, params)


averager = Averager(2)
params = {"w": jnp.full((512, 512), 0.01, "float32")}
x = jnp.ones((8, 512))
for step in range(120):
    params = train_step(params, x)
    averager.update(params)
print(averager.average()["w"].mean())
