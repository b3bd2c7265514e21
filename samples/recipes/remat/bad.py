"""24 layers keep their activations for the backward pass: they need more than the 24 MiB that the step may have."""

# jaxscope run --check max-temp-bytes=24MiB bad.py

from functools import partial

import jax
import jax.numpy as jnp

LAYERS, WIDTH, BATCH = 24, 128, 1024


def layer(x, w):
    return x + jnp.tanh(jnp.sin(jnp.tanh(x @ w["up"])) @ w["down"]), None


def loss(layers, x):
    x, _ = jax.lax.scan(layer, x, layers)
    return jnp.mean(x**2)


@partial(jax.jit, donate_argnames="layers")
def train_step(layers, x):
    value, gradients = jax.value_and_grad(loss)(layers, x)
    return jax.tree.map(lambda w, g: w - 0.01 * g, layers, gradients), value


def main():
    layers = {
        "up": jnp.full((LAYERS, WIDTH, WIDTH), 0.01, jnp.float32),
        "down": jnp.full((LAYERS, WIDTH, WIDTH), 0.01, jnp.float32),
    }
    x = jnp.ones((BATCH, WIDTH))
    for _ in range(3):
        layers, value = train_step(layers, x)  # JX591
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
