"""The last batch of an epoch has 5 images, the others 128: the step is compiled again for the last batch."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

DIGITS = np.load(Path(__file__).parents[2] / "digits.npz")
BATCH = 128


def batches():
    images, labels = DIGITS["images"].reshape(-1, 64) / np.float32(16), DIGITS["labels"]
    for at in range(0, len(images), BATCH):
        yield images[at : at + BATCH], labels[at : at + BATCH]


def loss(params, images, labels):
    hidden = jax.nn.relu(images @ params["in"])
    scores = jax.nn.log_softmax(hidden @ params["out"])
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


@jax.jit
def train_step(params, images, labels):
    value, gradients = jax.value_and_grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def main():
    rng = np.random.default_rng(0)
    params = {
        "in": jnp.asarray(rng.normal(size=(64, 128)) / 8, jnp.float32),
        "out": jnp.asarray(rng.normal(size=(128, 10)) / 8, jnp.float32),
    }
    for _ in range(2):
        for images, labels in batches():
            params, value = train_step(params, images, labels)  # JX101
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
