# Mended: the values and the batches come from jitted functions, and NumPy compares NumPy arrays
# applies: fix-jit-each, fix-jit-around, fix-jit-iteration
import jax
import jax.numpy as jnp
import numpy as np

STEPS, SIZE = 64, 4


@jax.jit
def policy(w, observation):
    return jnp.argmax(observation @ w, axis=-1)


@jax.jit
def values(w, observations):
    hidden = jnp.tanh(observations @ w)
    hidden = jnp.tanh(hidden @ w.T)
    return jnp.sum(jnp.tanh(hidden @ w), axis=-1)


@jax.jit
def update(w, key, seen, targets):
    key, order = jax.random.split(key)
    chosen = jax.random.permutation(order, STEPS)
    batch, targets = seen[chosen], targets[chosen]
    return w - 1e-3 * jax.grad(lambda w: ((values(w, batch) - targets) ** 2).mean())(w), key


def train(w, key, iterations):
    observation = np.zeros((1, SIZE), np.float32)
    seen = np.zeros((STEPS, SIZE), np.float32)
    for _ in range(iterations):
        for step in range(STEPS):
            seen[step] = observation
            action = np.asarray(policy(w, observation))
            observation = np.tanh(observation + 0.1 * (action - 1.0)).astype(np.float32)
            ended = np.logical_or(observation > 0.9, observation < -0.9)
        targets = values(w, seen)
        for _ in range(4):
            w, key = update(w, key, seen, targets)
    return w, ended


w, ended = train(jnp.ones((SIZE, 3)) * 0.1, jax.random.key(0), 120)
print(w.sum(), ended.sum())
