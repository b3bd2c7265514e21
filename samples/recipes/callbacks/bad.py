"""``jax.debug.print`` is called in each step: the device calls Python, and each call of the step takes
JAX's slow path.
"""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    jax.debug.print("loss {}", value)  # JX301
    return w - 0.1 * gradient


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    for _ in range(8):
        w = train_step(w, x)  # JX125
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
