"""``lax.cond`` chooses on the device: the step is one program, and Python never waits."""

from functools import partial

import jax
import jax.numpy as jnp

import jaxscope


@partial(jax.jit, donate_argnames="w")
def train_step(w, x):
    found = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    length = jnp.sqrt(jnp.sum(found**2))
    found = jax.lax.cond(length > 1.0, lambda g: g / length, lambda g: g, found)
    return w - 0.1 * found


def main():
    w, x = jnp.ones((512, 512)), jnp.ones((256, 512))
    for _ in range(120):
        w = train_step(w, x)
        jaxscope.step()
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
