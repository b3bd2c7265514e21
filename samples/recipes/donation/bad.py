"""The state is not donated: the old parameters and moments stay in memory while the new ones are written,
so the peak has the state twice.
"""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(state, x):
    w, moment = state["w"], state["moment"]
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    moment = 0.9 * moment + gradient
    return {"w": w - 0.1 * moment, "moment": moment}


def main():
    state = {"w": jnp.ones((4096, 1024)), "moment": jnp.zeros((4096, 1024))}
    x = jnp.ones((32, 4096))
    for _ in range(10):
        state = train_step(state, x)  # JX506
    print(f"mean {state['w'].mean():.3f}")


if __name__ == "__main__":
    main()
