# a batch is an item of a Python list, at an index that jax.random draws
# may: JX608
import jax
import jax.numpy as jnp

NAMES = [jnp.arange(24) % (k + 3) for k in range(300)]


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((x @ w - 1.0) ** 2))(w)


def sample(key, names):
    i = jax.random.randint(key, (1,), 0, len(names))[0]
    return jnp.eye(27)[names[i], :]  # must: JX605|JX133 first ~ is not a JAX array


w = jnp.zeros((27, 8))
key = jax.random.key(0)
for _ in range(3000):
    key, drawn = jax.random.split(key)
    w = step(w, sample(drawn, NAMES))
print(w.sum())
