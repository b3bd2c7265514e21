"""The images of a batch are copied to the device one by one."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x.reshape(len(x), -1) @ w) ** 2))(w)


def main():
    images = np.random.default_rng(0).random((512, 12, 12)).astype("float32")
    w = jnp.ones((144, 4))
    for _ in range(3):
        for start in range(0, 512, 64):
            batch = [jnp.asarray(image) for image in images[start : start + 64]]  # JX604
            w = train_step(w, jnp.stack(batch))
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
