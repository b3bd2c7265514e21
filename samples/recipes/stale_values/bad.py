"""The learning rate is a global variable that becomes smaller after each epoch: the compiled step keeps the
first value.
"""

import jax
import jax.numpy as jnp

import jaxscope

rate = 0.1


@jaxscope.watch
@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - rate * gradient


def main():
    global rate
    w, x = jnp.ones(16), jnp.ones((64, 16))
    for _ in range(3):
        for _ in range(5):
            w = train_step(w, x)  # JX131
        rate /= 10
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
