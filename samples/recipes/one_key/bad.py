"""The random key never changes: every step drops the same units."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x, key):
    def loss(w):
        kept = jax.random.bernoulli(key, 0.9, x.shape)
        return jnp.mean(jnp.tanh((x * kept) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.ones((32, 8)), jnp.ones((64, 32))
    key = jax.random.key(0)
    for _ in range(10):
        w = train_step(w, x, key)  # JX135
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
