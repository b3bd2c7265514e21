# lengths are padded to powers of two, a model is trained at two resolutions, and a name selects the loss
import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

LENGTHS = 16, 32, 64


@dataclasses.dataclass(frozen=True)
class Config:
    loss: str
    width: int = 8


@jax.jit
def answer(table, tokens, mask):
    return (jnp.tanh(table[tokens]) * mask[:, None]).sum(0) / mask.sum()


@jax.jit
def train(w, images):
    return w - 0.01 * jax.grad(lambda w: (jnp.tanh(images * w).mean((1, 2)) ** 2).sum())(w)


@partial(jax.jit, static_argnames="config")
def fit(config, w, x):
    def loss(w):
        error = jnp.tanh(x @ w) - 1
        return {"mse": error**2, "mae": jnp.abs(error), "exp": jnp.exp(error)}[config.loss].mean()

    return w - 0.1 * jax.grad(loss)(w)


rng = np.random.default_rng(0)
table = np.ones((100, 32), "float32")
for n in [*LENGTHS, *rng.integers(3, 64, 30)]:
    size = next(length for length in LENGTHS if length >= n)
    tokens = np.zeros(size, int)
    tokens[:n] = rng.integers(0, 100, n)
    answer(table, tokens, (np.arange(size) < n).astype("float32"))

w = np.float32(1)
for size in 16, 32:
    for _ in range(20):
        w = train(w, rng.normal(size=(4, size, size)).astype("float32"))

for name in "mse", "mae", "exp":
    weights = np.ones(8, "float32")
    for _ in range(20):
        weights = fit(Config(name), weights, rng.normal(size=(16, 8)).astype("float32"))
    print(name, np.asarray(weights).sum())
