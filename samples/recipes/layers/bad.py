"""Twenty-four equal layers are called in a Python loop: the program contains each of them, so the compiler
needs much longer than for one.
"""

import jax
import jax.numpy as jnp

LAYERS, WIDTH = 24, 64


def layer(x, w):
    scores = jax.nn.softmax((x @ w["query"]) @ x.T / WIDTH**0.5)
    return x + jnp.tanh(scores @ x @ w["value"])


def loss(layers, x):
    for w in layers:
        x = layer(x, w)  # JX202
    return jnp.mean(x**2)


@jax.jit
def train_step(layers, x):
    value, gradients = jax.value_and_grad(loss)(layers, x)
    return jax.tree.map(lambda w, g: w - 0.01 * g, layers, gradients), value


@jax.jit
def initial(key):
    a, b = jax.random.split(key)
    shape = (LAYERS, WIDTH, WIDTH)
    return [
        {"query": q, "value": v}
        for q, v in zip(jax.random.normal(a, shape), jax.random.normal(b, shape), strict=True)
    ]


def main():
    layers = initial(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (128, WIDTH))
    for _ in range(4):
        layers, value = train_step(layers, x)
    print(f"loss {value:.3f}")


if __name__ == "__main__":
    main()
