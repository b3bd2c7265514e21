"""Train a small convolutional network to read handwritten digits.

Real data (1,797 images from `digits.npz`, see README.md), plain JAX and NumPy:

    python samples/train_digits.py
    jaxscope run samples/train_digits.py

The program is correct and reaches about 98% on digits it has not seen. It also spends
time it need not spend, in a way that is easy to write and hard to notice: the report
that `jaxscope run` prints at the end shows where.
"""

import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

BATCH_SIZE = 64
EPOCHS = 12
LEARNING_RATE = 2e-3


def load_data(held_out=360, seed=0):
    """The digits as float images in [0, 1] with a channel axis, shuffled and split."""
    with np.load(Path(__file__).with_name("digits.npz")) as data:
        images = data["images"][..., None].astype(np.float32) / 16
        labels = data["labels"].astype(np.int32)
    order = np.random.default_rng(seed).permutation(len(labels))
    test, train = order[:held_out], order[held_out:]
    return (images[train], labels[train]), (images[test], labels[test])


def batches(images, labels, rng):
    """One epoch of the training set in a new random order."""
    order = rng.permutation(len(labels))
    for start in range(0, len(order), BATCH_SIZE):
        chosen = order[start : start + BATCH_SIZE]
        yield {"image": images[chosen], "label": labels[chosen]}


@jax.jit
def init(key):
    """Parameters (two convolutions, two dense layers) and the state of the Adam optimiser."""
    shapes = {
        "conv1": (3, 3, 1, 16),
        "conv2": (3, 3, 16, 32),
        "dense1": (2 * 2 * 32, 64),
        "dense2": (64, 10),
    }
    params = {}
    for subkey, (name, shape) in zip(jax.random.split(key, len(shapes)), shapes.items(), strict=True):
        kernel = jax.random.normal(subkey, shape) * np.sqrt(2 / np.prod(shape[:-1]))
        params[name] = {"kernel": kernel, "bias": jnp.zeros(shape[-1])}
    zeros = jax.tree.map(jnp.zeros_like, params)
    return params, {"mean": zeros, "square": zeros, "count": jnp.zeros((), jnp.int32)}


def conv_block(layer, x):
    """Convolution, bias, ReLU, and a 2x2 max pool."""
    x = jax.lax.conv_general_dilated(
        x, layer["kernel"], window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.relu(x + layer["bias"])
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def predict(params, images):
    """Logits for each of the ten digits."""
    x = conv_block(params["conv1"], images)
    x = conv_block(params["conv2"], x)
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ params["dense1"]["kernel"] + params["dense1"]["bias"])
    return x @ params["dense2"]["kernel"] + params["dense2"]["bias"]


def loss_fn(params, batch):
    """Mean cross-entropy of a batch."""
    log_probs = jax.nn.log_softmax(predict(params, batch["image"]))
    return -jnp.take_along_axis(log_probs, batch["label"][:, None], axis=1).mean()


@partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params, opt_state, batch, b1=0.9, b2=0.999, eps=1e-8):
    """One step of Adam. The old parameters and moments are donated to the new ones."""
    loss, grads = jax.value_and_grad(loss_fn)(params, batch)
    count = opt_state["count"] + 1
    mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, opt_state["mean"], grads)
    square = jax.tree.map(lambda s, g: b2 * s + (1 - b2) * g**2, opt_state["square"], grads)
    rate = LEARNING_RATE * jnp.sqrt(1 - b2**count) / (1 - b1**count)
    params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + eps), params, mean, square)
    return params, {"mean": mean, "square": square, "count": count}, loss


@jax.jit
def accuracy(params, images, labels):
    """The share of images whose largest logit is at the right digit."""
    return (predict(params, images).argmax(-1) == labels).mean()


def main():
    (images, labels), (test_images, test_labels) = load_data()
    rng = np.random.default_rng(1)
    params, opt_state = init(jax.random.key(0))
    for epoch in range(1, EPOCHS + 1):
        start, losses = time.perf_counter(), []
        for batch in batches(images, labels, rng):
            params, opt_state, loss = train_step(params, opt_state, batch)
            losses.append(loss)
        held_out = accuracy(params, test_images, test_labels)
        print(
            f"epoch {epoch:2}: loss {np.mean(losses):.4f}, held-out accuracy {held_out:.3f},"
            f" {1000 * (time.perf_counter() - start):6.1f} ms"
        )
    print(f"accuracy on {len(test_labels)} held-out digits: {accuracy(params, test_images, test_labels):.4f}")


if __name__ == "__main__":
    main()
