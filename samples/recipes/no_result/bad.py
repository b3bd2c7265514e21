"""The step changes the dictionary that it receives, and returns nothing: it only changes JAX's copy, and
nothing is trained.
"""

import jax
import jax.numpy as jnp


def loss(params, x):
    return jnp.mean(jnp.tanh(x @ params["w"]) ** 2)


@jax.jit
def train_step(params, x):
    gradients = jax.grad(loss)(params, x)
    params["w"] = params["w"] - 0.1 * gradients["w"]


def main():
    params, x = {"w": jnp.ones(16)}, jnp.ones((64, 16))
    for _ in range(5):
        train_step(params, x)  # JX203
    print(f"mean {params['w'].mean():.3f}")


if __name__ == "__main__":
    main()
