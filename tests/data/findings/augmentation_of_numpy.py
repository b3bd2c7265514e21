# an augmentation that the training step calls draws its mask and its noise with NumPy
import jax
import jax.numpy as jnp
import numpy as np

BATCH, SIZE = 64, 72


def augment(images):
    start = np.random.randint(0, SIZE - 8)  # must: JX134 first ~ np.random.randint
    mask = np.ones((SIZE, 1), np.float32)
    mask[start : start + 8] = 0.0
    noise = 0.1 * np.random.normal(size=(BATCH, SIZE, SIZE)).astype(np.float32)
    return images * mask + noise


def loss_fn(w, images, targets):
    features = jnp.tanh(augment(images).reshape(BATCH, -1) @ w)
    return jnp.mean((features - targets) ** 2)


@jax.jit
def step(w, images, targets):
    return w - 0.1 * jax.grad(loss_fn)(w, images, targets)


rng = np.random.default_rng(0)
images = jax.device_put(rng.random((BATCH, SIZE, SIZE)).astype(np.float32))
targets = jax.device_put(rng.random((BATCH, 8)).astype(np.float32))
w = jax.device_put(0.01 * rng.normal(size=(SIZE * SIZE, 8)).astype(np.float32))
for _ in range(20):
    w = step(w, images, targets)
print(float(jnp.abs(w).max()))
