"""A training step that assigns the new weights to its argument and returns nothing: the weights never change."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


@jax.jit
def train_step(params, x, y):
    gradient = jax.grad(loss)(params["w"], x, y)
    params["w"] = params["w"] - 0.1 * gradient  # changes the dict of the trace, not the caller's


def main():
    random = np.random.default_rng(0)
    truth = random.normal(size=(16, 1))
    params = {"w": jnp.zeros((16, 1))}
    for _ in range(20):
        x = random.normal(size=(64, 16)).astype("float32")
        train_step(params, jax.device_put(x), jax.device_put((x @ truth).astype("float32")))  # JX203
    print(f"distance from the truth: {np.abs(np.asarray(params['w']) - truth).max():.2f}")


if __name__ == "__main__":
    main()
