"""``float(loss)`` is called in each step: Python waits until the device is done, and then the device waits
for Python.
"""

from functools import partial

import jax
import jax.numpy as jnp

import jaxscope


@partial(jax.jit, donate_argnames="w")
def train_step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient, value


def main():
    w, x = jnp.ones((512, 512)), jnp.ones((256, 512))
    losses = []
    for _ in range(120):
        w, value = train_step(w, x)
        losses.append(float(value))  # JX601
        jaxscope.step()
    print(f"loss {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
