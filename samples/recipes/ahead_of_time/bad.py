"""The step is compiled ahead of time for arrays without a device, but called with arrays on a device: the
compiled program is never used.
"""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w, x = jax.device_put((jnp.ones(16), jnp.ones((64, 16))), jax.devices()[0])
    train_step.lower(jax.ShapeDtypeStruct((16,), "f4"), jax.ShapeDtypeStruct((64, 16), "f4")).compile()
    for _ in range(5):
        w = train_step(w, x)  # JX113
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
