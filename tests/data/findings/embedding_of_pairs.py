# an embedding in two dimensions: the distances of all pairs are computed from differences, in each of many steps
import jax
import jax.numpy as jnp


def affinity(y):
    distances = ((y[None, :, :] - y[:, None, :]) ** 2).sum(axis=-1)  # must: JX211 first ~ squared distances
    w = 1 / (1 + distances)
    return w / w.sum(axis=-1, keepdims=True)


@jax.jit
def update(y, p):
    slope = jax.grad(lambda y: jnp.sum((affinity(y) - p) ** 2))(y)
    return y - 0.1 * slope


y = jax.random.normal(jax.random.key(0), (1000, 2))
p = jax.nn.softmax(jax.random.normal(jax.random.key(1), (1000, 1000)))
for _ in range(250):
    y = update(y, p)
print(y.std())
