"""Small numbers stay on the host; the next batch is on its way to the device while this one is computed."""

from collections import deque
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

ROWS, COLUMNS = 4096, 1024


def batches(n=8):
    """Yield bytes: a quarter of the traffic, and the step makes numbers of them."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        yield rng.integers(0, 256, (ROWS, COLUMNS), dtype=np.uint8), np.ones(ROWS, "float32")


def prefetched(batches, ahead=2):
    """Yield the batches as arrays of the device; ``ahead`` of them are on their way."""
    ready = deque()
    for batch in batches:
        ready.append(jax.device_put(batch))
        if len(ready) > ahead:
            yield ready.popleft()
    yield from ready


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
