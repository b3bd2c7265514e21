"""A loss subtracts y of shape [32] from predictions of shape [32,1]: the mean is over 32 x 32 differences."""

import jax
import jax.numpy as jnp


@jax.jit
def loss(w, x, y):
    prediction = x @ w
    return jnp.mean((prediction - y) ** 2)  # JX309


def main():
    x = jnp.linspace(0.0, 1.0, 96).reshape(32, 3)
    print(loss(jnp.ones((3, 1)), x, x.sum(axis=1)))


if __name__ == "__main__":
    main()
