"""The images of a batch are changed in the jitted step, all at once."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, SIZE = 60, 512, 16


def augmented(image, key):
    shift, flip = jax.random.split(key)
    image = jnp.roll(image, jax.random.randint(shift, (), -2, 3), axis=1)
    image = jnp.where(jax.random.bernoulli(flip), image[:, ::-1], image)
    return (image - image.mean()) / (image.std() + 1e-6)


@jax.jit
def train_step(w, images, labels, key, step):
    keys = jax.random.split(jax.random.fold_in(key, step), len(images))
    images = jax.vmap(augmented)(images, keys)

    def loss(w):
        logits = images.reshape(len(images), -1) @ w
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 10), axis=-1))

    return w - 0.1 * jax.grad(loss)(w)


def main():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(BATCH, SIZE, SIZE)).astype(np.float32)
    labels = rng.integers(0, 10, BATCH)
    w, key = jnp.zeros((SIZE * SIZE, 10)), jax.random.key(0)
    for step in range(STEPS):
        w = train_step(w, images, labels, key, step)
    print(f"largest weight {float(jnp.max(jnp.abs(w))):.4f}")


if __name__ == "__main__":
    main()
