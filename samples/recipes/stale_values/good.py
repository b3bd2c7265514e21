"""The learning rate is an argument of the step."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope


@jaxscope.watch
@jax.jit
def train_step(w, x, rate):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - rate * gradient


def main():
    w, x, rate = jnp.ones(16), jnp.ones((64, 16)), np.float32(0.1)
    for _ in range(3):
        for _ in range(5):
            w = train_step(w, x, rate)
        rate /= np.float32(10)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
