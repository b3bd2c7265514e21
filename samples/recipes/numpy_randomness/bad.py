"""NumPy draws random numbers while JAX traces the step: the noise of the first step becomes a constant of
the program.
"""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(w, x):
    def loss(w):
        noise = np.random.normal(size=x.shape).astype("float32")  # JX134
        return jnp.mean(jnp.tanh((x + 0.1 * noise) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.ones((32, 8)), jnp.ones((64, 32))
    for _ in range(10):
        w = train_step(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
