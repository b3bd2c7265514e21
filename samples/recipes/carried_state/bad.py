"""The state starts with other types than the step returns: the moments become bfloat16, and the mean starts
as the Python number ``0.0``.
"""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(state, x):
    w, moment = state["w"], state["moment"]
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w.astype(jnp.bfloat16))
    moment = 0.9 * moment.astype(gradient.dtype) + gradient
    return {"w": w - 0.1 * moment, "moment": moment}, value.astype(jnp.float32)


@jax.jit
def running(mean, value):
    return 0.9 * mean + 0.1 * value


def main():
    x = jnp.ones((64, 16), jnp.bfloat16)
    state = {"w": jnp.ones(16), "moment": jnp.zeros(16)}
    mean = 0.0
    for _ in range(5):
        state, value = train_step(state, x)  # JX102
        mean = running(mean, value)  # JX103
    print(f"loss {mean:.3f}")


if __name__ == "__main__":
    main()
