"""The setting for debugging is off: a step is one program."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, inputs, targets):
    def loss(weights):
        return jnp.mean((jnp.tanh(inputs @ weights) - targets) ** 2)

    value, slope = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * slope, value


def main():
    inputs = jnp.linspace(-1.0, 1.0, 64 * 8).reshape(64, 8)
    targets, weights = jnp.sin(inputs.sum(1)), jnp.zeros(8)
    for _ in range(400):
        weights, value = step(weights, inputs, targets)
    print(f"loss {float(value):.4f}")


if __name__ == "__main__":
    main()
