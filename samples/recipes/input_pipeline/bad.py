"""Each batch is a NumPy array, which the call itself copies to the device, and its mask is a NumPy array in
only some of the calls.
"""

# jaxscope run --profile steps=5:24 bad.py

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope

ROWS, COLUMNS = 4096, 1024


def batches(n=30):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (4 * ROWS, COLUMNS), dtype=np.uint8)
    for i in range(n):
        images = pixels[rng.permutation(len(pixels))[:ROWS]].astype("float32") / 255
        mask = np.ones(ROWS, "float32") if i % 2 else jnp.ones(ROWS)
        weight = np.float32(1) if i % 4 < 2 else jnp.float32(1)
        yield images, mask, weight


@jaxscope.watch
@partial(jax.jit, donate_argnames="w")
def train_step(w, images, mask, weight):
    def loss(w):
        return weight * jnp.mean(mask * jnp.tanh(images @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w = jnp.ones(COLUMNS)
    for images, mask, weight in batches():
        w = train_step(w, images, mask, weight)  # JX602 JX123
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
