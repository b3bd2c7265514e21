"""A list becomes longer in each step, and the number of the step is a static field of a dataclass."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["step"])
@dataclasses.dataclass
class State:
    w: jax.Array
    step: int


@jax.jit
def train_step(state, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(state.w)
    return state.w - 0.1 * gradient, value


@jax.jit
def smooth(losses):
    return sum(0.9**age * value for age, value in enumerate(reversed(losses)))


def main():
    state, x = State(jnp.ones(16), 0), jnp.ones((64, 16))
    losses = []
    for _ in range(6):
        w, value = train_step(state, x)  # JX109
        state = State(w, state.step + 1)
        losses.append(value)
        mean = smooth(losses)  # JX105
    print(f"loss {mean:.3f}")


if __name__ == "__main__":
    main()
