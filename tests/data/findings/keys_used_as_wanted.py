# two draws from one variable that are right: a new key between them, one branch of two, one order for two arrays
import jax
import jax.numpy as jnp
from jax import random

EPSILON = 0.1


def explore(key, q, greedy):
    if greedy:
        return q + 1e-3 * random.normal(key, q.shape)
    return random.uniform(key, q.shape)


def shuffled(key, x, y):
    return random.permutation(key, x), random.permutation(key, y)


@jax.jit
def step(w, x, y, key):
    x, y = shuffled(key, x, y)
    key, sub = random.split(key)
    noise = random.normal(sub, w.shape)
    key, sub = random.split(key)
    mask = random.bernoulli(sub, 0.5, w.shape)
    for width in (1, 2):
        key = random.fold_in(key, width)
        noise = noise + random.normal(key, w.shape) / width
    w = w - 0.1 * jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    return jnp.where(mask, w + 1e-3 * noise, w) + 1e-3 * explore(random.fold_in(key, 3), w, greedy=False)


w = jnp.zeros(8)
for n in range(5):
    key = random.key(n)
    w = step(w, random.normal(key, (16, 8)), jnp.arange(16.0), random.fold_in(key, 1))
print(w.sum())
