# the images of a batch are augmented together, by a jitted function
# applies: fix-or-vmap, fix-inner-loop, fix-jit-step-function, python-values-static, fix-loop-by-vmap
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
@jax.vmap
def augment(key, image):
    flip, noise, place = jax.random.split(key, 3)
    image = jnp.where(jax.random.bernoulli(flip), image[:, ::-1], image)
    image = image + 0.1 * jax.random.normal(noise, image.shape)
    top, left = jax.random.randint(place, (2,), 0, 5)
    return jax.lax.dynamic_slice(jnp.pad(image, 2), (top, left), (16, 16))


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x.reshape(len(x), -1) @ w) ** 2))(w)


images = np.random.default_rng(0).random((1280, 16, 16), dtype="float32")
key, w = jax.random.key(0), jnp.zeros(256)
for i in range(0, 1280, 16):
    key, sub = jax.random.split(key)
    keys = jax.random.split(sub, 16)
    x = augment(keys, images[i : i + 16])
    w = step(w, x)
print(w.sum())
