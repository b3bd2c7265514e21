"""The last batch is padded to 128 images, and the padding has a weight of zero in the loss."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

DIGITS = np.load(Path(__file__).parents[2] / "digits.npz")
BATCH = 128


def batches():
    images, labels = DIGITS["images"].reshape(-1, 64) / np.float32(16), DIGITS["labels"]
    for at in range(0, len(images), BATCH):
        missing = max(0, at + BATCH - len(images))
        weights = np.pad(np.ones(BATCH - missing, "float32"), (0, missing))
        batch = np.pad(images[at : at + BATCH], ((0, missing), (0, 0)))
        yield batch, np.pad(labels[at : at + BATCH], (0, missing)), weights


def loss(params, images, labels, weights):
    hidden = jax.nn.relu(images @ params["in"])
    scores = jax.nn.log_softmax(hidden @ params["out"])
    each = -jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return (each * weights).sum() / weights.sum()


@jax.jit
def train_step(params, images, labels, weights):
    value, gradients = jax.value_and_grad(loss)(params, images, labels, weights)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def main():
    rng = np.random.default_rng(0)
    params = {
        "in": jnp.asarray(rng.normal(size=(64, 128)) / 8, jnp.float32),
        "out": jnp.asarray(rng.normal(size=(128, 10)) / 8, jnp.float32),
    }
    for _ in range(2):
        for images, labels, weights in batches():
            params, value = train_step(params, images, labels, weights)
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
