"""One array is float32 in a step that should compute in bfloat16: it makes the whole product float32."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SCALE = np.linspace(0.5, 1.5, 512, dtype=np.float32)


@partial(jax.jit, donate_argnames="w")
def train_step(w, x):
    def loss(w):
        hidden = (x @ w.astype(jnp.bfloat16)) * SCALE  # JX302
        return jnp.mean(jnp.tanh(hidden @ w.T).astype(jnp.float32) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.ones((512, 512)), jnp.ones((256, 512), jnp.bfloat16)
    for _ in range(5):
        w = train_step(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
