# Mended: one jitted function computes an iteration; a method calls it and assigns what it returns
# applies: fix-jit-step
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
data = rng.normal(size=(400, 8)).astype(np.float32)
grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(-1, 2).astype(np.float32)


def best(codebook, x):
    difference = codebook - x
    distance = (difference**2).sum(1)
    return jnp.argmin(distance)


def pull(winner, width):
    near = ((grid - grid[0]) ** 2).sum(1) + winner
    weights = jnp.exp(-near / width)
    smooth = jnp.tanh(weights)
    return jnp.minimum(smooth, 1.0)


@jax.jit
def update(codebook, age, x, i):
    rate = jnp.exp(-i / 300.0)
    width = jnp.maximum(rate, 0.1)
    winner = best(codebook, x)
    codebook = codebook + rate * pull(winner, width)[:, None] * (x - codebook)
    age = jnp.where(age > winner, 0.0, age) + jnp.sqrt(rate)
    codebook = jnp.clip(codebook, -5, 5)
    spread = jnp.max(codebook, axis=0)
    low = jnp.min(codebook, axis=0)
    codebook = codebook - 0.01 * jnp.mean(codebook, axis=0)
    return codebook + 0.001 * jnp.abs(spread - low), age


class Map:
    def __init__(self):
        self.codebook = jnp.asarray(rng.normal(size=(36, 8)), jnp.float32)
        self.age = jnp.zeros(36)

    def train(self):
        for i, x in enumerate(data):
            self.codebook, self.age = update(self.codebook, self.age, x, i)


som = Map()
som.train()
print(som.codebook.sum(), som.age.sum())
