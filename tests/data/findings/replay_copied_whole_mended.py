# Mended: the rows are taken in NumPy, and only they are copied
# applies: fix-index-before-copy
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
observations = np.zeros((30_000, 20), "f4")
torques = np.zeros((30_000, 4), "f4")


def collect(begin, count):
    rows = np.arange(begin, begin + count) % len(observations)
    observations[rows] = rng.normal(size=(count, 20))
    torques[rows] = np.tanh(observations[rows, :4])


@jax.jit
def step(params, state, x, y):
    def loss(params):
        return ((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


optimizer = optax.adam(1e-3)
keys = jax.random.split(jax.random.key(0))
params = {"in": 0.1 * jax.random.normal(keys[0], (20, 32)), "out": 0.1 * jax.random.normal(keys[1], (32, 4))}
state = jax.jit(optimizer.init)(params)
collect(0, len(observations))
for n in range(600):
    collect(n * 8, 8)
    rows = rng.integers(0, len(observations), 64)
    x = jnp.asarray(observations[rows])
    y = jnp.asarray(torques[rows])
    params, state, value = step(params, state, x, y)
print(f"{value:.4f}")
