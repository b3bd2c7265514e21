"""The losses are bfloat16, and so is their sum: the sum stops growing at 256 times a loss."""

import jax
import jax.numpy as jnp


@jax.jit
def loss(w, x):
    return jnp.mean((x @ w) ** 2)


def main():
    w, x = jnp.ones((64, 8), jnp.bfloat16), jnp.full((32, 64), 1 / 64, jnp.bfloat16)
    total = 0.0
    for _ in range(600):
        total = total + loss(w, x)  # JX304
    print(f"mean loss {float(total) / 600:.3f}")


if __name__ == "__main__":
    main()
