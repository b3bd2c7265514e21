"""The step returns the new parameters, and the loop passes them to the next step."""

import jax
import jax.numpy as jnp


def loss(params, x):
    return jnp.mean(jnp.tanh(x @ params["w"]) ** 2)


@jax.jit
def train_step(params, x):
    gradients = jax.grad(loss)(params, x)
    return {"w": params["w"] - 0.1 * gradients["w"]}


def main():
    params, x = {"w": jnp.ones(16)}, jnp.ones((64, 16))
    for _ in range(5):
        params = train_step(params, x)
    print(f"mean {params['w'].mean():.3f}")


if __name__ == "__main__":
    main()
