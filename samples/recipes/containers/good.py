"""The step number is an array like the parameters, and the history has the same number of entries in
each step.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp

STEPS = 6


@partial(jax.tree_util.register_dataclass, data_fields=["w", "step", "losses"], meta_fields=[])
@dataclasses.dataclass
class State:
    w: jax.Array
    step: jax.Array
    losses: jax.Array


@jax.jit
def train_step(state, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(state.w)
    return State(state.w - 0.1 * gradient, state.step + 1, state.losses.at[state.step].set(value))


@jax.jit
def smooth(state):
    age = state.step - 1 - jnp.arange(STEPS)
    return jnp.sum(jnp.where(age >= 0, 0.9**age * state.losses, 0))


def main():
    state, x = State(jnp.ones(16), jnp.int32(0), jnp.zeros(STEPS)), jnp.ones((64, 16))
    for _ in range(STEPS):
        state = train_step(state, x)
        mean = smooth(state)
    print(f"loss {mean:.3f}")


if __name__ == "__main__":
    main()
