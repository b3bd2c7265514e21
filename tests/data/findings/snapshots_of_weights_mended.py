# an object keeps the sum of the weights of every second step
# applies: fix-keep-fewer
import jax
import jax.numpy as jnp


class Averager:
    def __init__(self, every):
        self.every, self.seen = every, 0
        self.total = None

    def update(self, params):
        self.seen += 1
        if self.seen % self.every == 0:
            self.total = params if self.total is None else added(self.total, params)

    def average(self):
        return jax.tree.map(lambda leaf: leaf / (self.seen // self.every), self.total)


@jax.jit
def added(total, params):
    return jax.tree.map(jnp.add, total, params)


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
