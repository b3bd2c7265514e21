"""JAX's caches are cleared after each epoch, to save memory: each epoch compiles its programs again."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    for _ in range(3):
        for _ in range(5):
            w = train_step(w, x)  # JX112
        jax.clear_caches()
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
