"""Matrix products use bfloat16, the master weights and the loss float32: each conversion is written explicitly."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SCALE = np.linspace(0.5, 1.5, 512, dtype=np.float32)


@partial(jax.jit, donate_argnames="w")
def train_step(w, x):
    def loss(w):
        half = w.astype(jnp.bfloat16)
        hidden = (x @ half) * SCALE.astype(jnp.bfloat16)
        return jnp.mean(jnp.tanh(hidden @ half.T).astype(jnp.float32) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.ones((512, 512)), jnp.ones((256, 512), jnp.bfloat16)
    for _ in range(5):
        w = train_step(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
