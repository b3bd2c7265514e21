"""A smoke test runs one step only: it passes, and does not notice that the second step compiles again."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(state, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(state["w"])
    return {"w": state["w"] - 0.1 * gradient, "count": state["count"] + jnp.float32(1)}


def main():
    state = {"w": jnp.ones(16), "count": 0.0}
    state = train_step(state, jnp.ones((64, 16)))  # JX130
    print(f"mean {state['w'].mean():.3f}")


if __name__ == "__main__":
    main()
