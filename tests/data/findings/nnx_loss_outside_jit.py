# the validation loss of an nnx model runs outside jit after each epoch
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.head = nnx.Linear(8 * 49, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.conv(x)), (2, 2), (2, 2))  # must: JX133 first ~ apply nnx\.jit to
        return self.head(x.reshape(len(x), -1))


def loss(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits


@nnx.jit
def train(model, optimizer, x, y):
    gradients, _ = nnx.grad(loss, has_aux=True)(model, x, y)
    optimizer.update(model, gradients)


rng = np.random.default_rng(0)
images = rng.normal(size=(640, 14, 14, 1)).astype("float32")
labels = rng.integers(0, 10, 640)
model = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
for epoch in range(3):
    for i in range(0, 384, 128):
        train(model, optimizer, images[i : i + 128], labels[i : i + 128])
    total = 0.0
    for i in range(384, 640, 128):
        value, _ = loss(model, jnp.array(images[i : i + 128]), jnp.array(labels[i : i + 128]))
        total += float(value)
    print(epoch, total)
