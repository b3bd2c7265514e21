"""The compiled programs are kept; deleting arrays frees the memory."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    for _ in range(3):
        for _ in range(5):
            w = train_step(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
