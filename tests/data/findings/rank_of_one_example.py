# one example is passed without the axis of the batch: one axis more would still be another size
import jax
import jax.numpy as jnp


@jax.jit
def binarize(key, images):
    return jax.random.bernoulli(key, images).astype(images.dtype)


@jax.jit
def train(w, key, images):
    x = binarize(key, images)
    return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)


w, key = jnp.ones((28, 4)), jax.random.key(0)
images = jnp.linspace(0.0, 1.0, 32 * 28 * 28).reshape(32, 28, 28)
shown = binarize(key, images)
for i in range(4):
    key, drawn = jax.random.split(key)
    w = train(w, drawn, images)
    shown = binarize(key, images[i])  # must: JX101 first ~ change nothing if you need images with both shapes
print(w.sum(), shown.mean())
