"""The gradient of a long simulation keeps the values of all its steps in memory."""

import jax
import jax.numpy as jnp


def loss(w, x):
    def body(h, _):
        a, b = jnp.tanh(h * w), jnp.sin(h - w)
        c = a * jnp.exp(-b) + jnp.cos(a * b)
        return h + 0.1 * jnp.tanh(c * jnp.sin(c)) * b, None

    return jax.lax.scan(body, x, None, 250)[0].mean()  # JX513


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(loss)(w, x)


def main():
    w, x = jnp.ones(64), jnp.ones((512, 64))
    for _ in range(2):
        w = train_step(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
