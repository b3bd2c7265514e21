"""The step returns its loss, and the host prints it now and then."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient, value


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    for step in range(8):
        w, value = train_step(w, x)
        if step % 4 == 3:
            print(f"loss {value:.3f}")
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
