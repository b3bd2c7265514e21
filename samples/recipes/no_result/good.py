"""The step returns the new weights, and the loop assigns them."""

import jax
import jax.numpy as jnp
import numpy as np


def loss(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


@jax.jit
def train_step(params, x, y):
    gradient = jax.grad(loss)(params["w"], x, y)
    return {"w": params["w"] - 0.1 * gradient}


def main():
    random = np.random.default_rng(0)
    truth = random.normal(size=(16, 1))
    params = {"w": jnp.zeros((16, 1))}
    for _ in range(20):
        x = random.normal(size=(64, 16)).astype("float32")
        params = train_step(params, jax.device_put(x), jax.device_put((x @ truth).astype("float32")))
    print(f"distance from the truth: {np.abs(np.asarray(params['w']) - truth).max():.2f}")


if __name__ == "__main__":
    main()
