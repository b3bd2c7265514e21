"""The loss of each step is kept in a list: the device has one more small array after each step, until the
training ends.
"""

import jax
import jax.numpy as jnp

import jaxscope


@jax.jit
def train_step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient, value


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    losses = []
    for step in range(60):
        w, value = train_step(w, x)  # JX501
        losses.append(value)
        jaxscope.step()
        if step % 10 == 9:
            jaxscope.snapshot()
    print(f"loss {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
