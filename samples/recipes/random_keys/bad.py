"""The random key is a constant of the program: every step drops the same units."""

import jax
import jax.numpy as jnp

KEY = jax.random.key(0)


@jax.jit
def train_step(w, x):
    def loss(w):
        kept = jax.random.bernoulli(KEY, 0.9, x.shape)
        return jnp.mean(jnp.tanh((x * kept) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.ones((32, 8)), jnp.ones((64, 32))
    for _ in range(10):
        w = train_step(w, x)  # JX134
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
