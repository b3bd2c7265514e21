# Mended: the mask and the noise are drawn with jax.random in each call
# applies: fix-draw-with-jax
import jax
import jax.numpy as jnp
import numpy as np

BATCH, SIZE = 64, 72


def augment(key, images):
    place, drawing = jax.random.split(key)
    start = jax.random.randint(place, (), 0, SIZE - 8)
    rows = jnp.arange(SIZE)[:, None]
    mask = jnp.where((rows >= start) & (rows < start + 8), 0.0, 1.0)
    noise = 0.1 * jax.random.normal(drawing, (BATCH, SIZE, SIZE))
    return images * mask + noise


def loss_fn(w, key, images, targets):
    features = jnp.tanh(augment(key, images).reshape(BATCH, -1) @ w)
    return jnp.mean((features - targets) ** 2)


@jax.jit
def step(w, key, images, targets):
    return w - 0.1 * jax.grad(loss_fn)(w, key, images, targets)


rng = np.random.default_rng(0)
images = jax.device_put(rng.random((BATCH, SIZE, SIZE)).astype(np.float32))
targets = jax.device_put(rng.random((BATCH, 8)).astype(np.float32))
w = jax.device_put(0.01 * rng.normal(size=(SIZE * SIZE, 8)).astype(np.float32))
key = jax.random.key(0)
for n in range(20):
    w = step(w, jax.random.fold_in(key, n), images, targets)
print(float(jnp.abs(w).max()))
