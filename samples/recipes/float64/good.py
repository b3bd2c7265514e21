"""The data from NumPy are converted to float32 at once; the integers stay int64."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)  # for the integers


@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    rng = np.random.default_rng(0)
    w, x = jnp.asarray(rng.normal(size=16), "f4"), jnp.asarray(rng.normal(size=(64, 16)), "f4")
    for _ in range(5):
        w = train_step(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
