"""The step is compiled for the arrays of the training itself, and the loop calls the compiled program."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w, x = jax.device_put((jnp.ones(16), jnp.ones((64, 16))), jax.devices()[0])
    compiled = train_step.lower(w, x).compile()
    for _ in range(5):
        w = compiled(w, x)
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
