"""The losses stay on the device, and are read together every fifty steps."""

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
    for step in range(120):
        w, value = train_step(w, x)
        losses.append(value)
        if step % 50 == 49:
            print(f"step {step + 1}: loss {jax.device_get(losses[-1]):.4f}")
            losses = losses[-1:]
        jaxscope.step()


if __name__ == "__main__":
    main()
