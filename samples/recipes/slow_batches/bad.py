"""Each batch is prepared in Python, one image after the other, while the device waits."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, SIZE = 60, 512, 16


@jax.jit
def train_step(w, images, labels):
    def loss(w):
        logits = images.reshape(len(images), -1) @ w
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 10), axis=-1))

    return w - 0.1 * jax.grad(loss)(w)


def augmented(images, rng):
    made = []
    for image in images:
        image = np.roll(image, rng.integers(-2, 3), axis=1)
        image = image[:, ::-1] if rng.random() < 0.5 else image
        made.append((image - image.mean()) / (image.std() + 1e-6))  # JX606
    return np.stack(made)


def main():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(BATCH, SIZE, SIZE)).astype(np.float32)
    labels = rng.integers(0, 10, BATCH)
    w = jnp.zeros((SIZE * SIZE, 10))
    for _ in range(STEPS):
        w = train_step(w, augmented(images, rng), labels)
    print(f"largest weight {float(jnp.max(jnp.abs(w))):.4f}")


if __name__ == "__main__":
    main()
