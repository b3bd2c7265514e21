# A self-organizing map: each iteration calls four methods, and none of their operations is in jit
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
data = rng.normal(size=(400, 8)).astype(np.float32)
grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(-1, 2).astype(np.float32)


class Map:
    def __init__(self):
        self.codebook = jnp.asarray(rng.normal(size=(36, 8)), jnp.float32)
        self.age = jnp.zeros(36)

    def rates(self, i):
        rate = jnp.exp(-i / 300.0)  # must: JX133 first ~ old values of self.codebook and self.age
        width = jnp.maximum(rate, 0.1)
        return rate, width

    def best(self, x):
        difference = self.codebook - x
        distance = (difference**2).sum(1)
        return jnp.argmin(distance)

    def pull(self, winner, width):
        near = ((grid - grid[0]) ** 2).sum(1) + winner
        weights = jnp.exp(-near / width)
        smooth = jnp.tanh(weights)
        return jnp.minimum(smooth, 1.0)

    def move(self, x, rate, small, winner):
        self.codebook = self.codebook + rate * small[:, None] * (x - self.codebook)
        self.age = jnp.where(self.age > winner, 0.0, self.age)
        self.age = self.age + jnp.sqrt(rate)
        self.codebook = jnp.clip(self.codebook, -5, 5)

    def center(self):
        spread = jnp.max(self.codebook, axis=0)
        low = jnp.min(self.codebook, axis=0)
        mean = jnp.mean(self.codebook, axis=0)
        self.codebook = self.codebook - 0.01 * mean
        self.codebook = self.codebook + 0.001 * jnp.abs(spread - low)

    def train(self):
        for i, x in enumerate(data):
            rate, width = self.rates(i)
            winner = self.best(x)
            self.move(x, rate, self.pull(winner, width), winner)
            self.center()


som = Map()
som.train()
print(som.codebook.sum(), som.age.sum())
