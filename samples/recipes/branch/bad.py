"""A Python ``if`` depends on a value that is on the device: in each step, Python waits for the length of
the gradient.
"""

from functools import partial

import jax
import jax.numpy as jnp

import jaxscope


@jax.jit
def gradient(w, x):
    found = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return found, jnp.sqrt(jnp.sum(found**2))


@partial(jax.jit, donate_argnames="w")
def clipped(w, found, length):
    return w - 0.1 * found / length


@partial(jax.jit, donate_argnames="w")
def plain(w, found):
    return w - 0.1 * found


def main():
    w, x = jnp.ones((512, 512)), jnp.ones((256, 512))
    for _ in range(120):
        found, length = gradient(w, x)
        w = clipped(w, found, length) if length > 1.0 else plain(w, found)  # JX601
        jaxscope.step()
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
