"""Small numbers stay on the host; the next batch is on its way to the device while this one is computed."""

# jaxscope run --profile steps=5:24 good.py

from collections import deque
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope

ROWS, COLUMNS = 4096, 1024


def batches(n=30):
    """Yield bytes: a quarter of the traffic, and the step makes numbers of them."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (4 * ROWS, COLUMNS), dtype=np.uint8)
    for _ in range(n):
        yield pixels[rng.permutation(len(pixels))[:ROWS]], np.ones(ROWS, "float32")


def prefetched(batches, ahead=2):
    """Yield the batches as arrays of the device; ``ahead`` of them are on their way."""
    ready = deque()
    for batch in batches:
        ready.append(jax.device_put(batch))
        if len(ready) > ahead:
            yield ready.popleft()
    yield from ready


@jaxscope.watch
@partial(jax.jit, donate_argnames="w")
def train_step(w, images, mask):
    def loss(w):
        return jnp.mean(mask * jnp.tanh((images / 255) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w = jnp.ones(COLUMNS)
    for images, mask in prefetched(batches()):
        w = train_step(w, images, mask)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
