"""The metrics are computed in a second forward pass, although the first one, for the gradient, has the same
values.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

DIGITS = np.load(Path(__file__).parents[2] / "digits.npz")
BATCH = 256


def scores(params, images):
    return jax.nn.relu(images @ params["in"]) @ params["out"]


def loss(params, images, labels):
    chances = jax.nn.log_softmax(scores(params, images))
    return -jnp.take_along_axis(chances, labels[:, None], axis=1).mean()


@jax.jit
def train_step(params, images, labels):
    gradients = jax.grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


@jax.jit
def accuracy(params, images, labels):
    return (scores(params, images).argmax(axis=1) == labels).mean()


def main():
    a, b = jax.random.split(jax.random.key(0))
    params = {"in": 0.1 * jax.random.normal(a, (64, 128)), "out": 0.1 * jax.random.normal(b, (128, 10))}
    images = jnp.asarray(DIGITS["images"].reshape(-1, 64)[:BATCH] / 16, jnp.float32)
    labels = jnp.asarray(DIGITS["labels"][:BATCH], jnp.int32)
    right = []
    for _ in range(20):
        right.append(accuracy(params, images, labels))  # JX205
        params = train_step(params, images, labels)
    print(f"right {right[-1]:.0%}")


if __name__ == "__main__":
    main()
