# a data set converts each image to an array of JAX, before the batch is stacked
# may: JX133
import jax
import jax.numpy as jnp
import numpy as np


class Shapes:
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.images, self.labels = rng.integers(0, 255, (n, 12, 12)).astype("uint8"), rng.integers(0, 4, n)

    def __getitem__(self, i):
        image = jnp.asarray(self.images[i], jnp.float32) / 255.0  # must: JX604
        return image, self.labels[i]


def batches(data, order, size):
    for i in range(0, len(order), size):
        items = [data[j] for j in order[i : i + size]]
        images, labels = zip(*items)
        yield jnp.stack(images), np.asarray(labels)


@jax.jit
def train_step(w, images, labels):
    def loss(w):
        logits = images.reshape(len(images), -1) @ w
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return w - 0.1 * jax.grad(loss)(w)


data, w = Shapes(512, 0), jnp.zeros((144, 4))
for epoch in range(3):
    for images, labels in batches(data, np.arange(512), 64):
        w = train_step(w, images, labels)
print(float(w.sum()))
