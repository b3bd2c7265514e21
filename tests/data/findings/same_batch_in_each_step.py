# the loop splits the same key in each step, and trains on one batch only
import jax
import jax.numpy as jnp
import numpy as np

data = np.sin(np.arange(5000, dtype="f4") * 0.1)
rng_key = jax.random.key(0)


def get_batch(key, size):
    starts = jax.random.randint(key, (size,), 0, len(data) - 9)
    windows = data[np.asarray(starts)[:, None] + np.arange(9)]
    return windows[:, :8], windows[:, 8]


@jax.jit
def step(w, x, y):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)


w = jnp.zeros(8)
for i in range(60):
    _, subkey = jax.random.split(rng_key)  # must: JX135 first ~ makes the same random keys in each iteration of the loop on line 22, because rng_key is the same each time.*rng_key, subkey = jax.random.split\(rng_key\)
    x, y = get_batch(subkey, 32)
    w = step(w, x, y)
print(w)
