"""A step calls three small jitted functions and many operations outside jit: each operation is compiled and
started separately.
"""

import jax
import jax.numpy as jnp

SHAPES = {"in": (64, 96), "middle": (96, 48), "out": (48, 8)}


@jax.jit
def gradients(params, x):
    def loss(params):
        hidden = jax.nn.relu(x @ params["in"])
        return jnp.mean(((hidden @ params["middle"]) @ params["out"]) ** 2)

    return jax.grad(loss)(params)


def train_step(params, moments, x):
    found = gradients(params, x)
    length = jnp.sqrt(sum(jnp.sum(g**2) for g in found.values()))
    for name in params:
        clipped = found[name] * jnp.minimum(1, 1 / length)
        moments[name] = 0.9 * moments[name] + 0.1 * clipped
        params[name] = params[name] - 0.1 * moments[name] / jnp.sqrt(1e-6 + moments[name] ** 2)  # JX133
    return params, moments


def main():
    params = {name: jnp.full(shape, 0.01, jnp.float32) for name, shape in SHAPES.items()}
    moments = {name: jnp.zeros(shape) for name, shape in SHAPES.items()}
    x = jnp.ones((32, 64))
    for _ in range(6):
        params, moments = train_step(params, moments, x)
    print(f"mean {params['out'].mean():.3f}")


if __name__ == "__main__":
    main()
