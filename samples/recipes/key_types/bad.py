"""The training uses a typed key, the evaluation an old key of two integers: the same function is compiled twice."""

import jax
import jax.numpy as jnp


@jax.jit
def loss(w, x, key):
    kept = jax.random.bernoulli(key, 0.9, x.shape)
    return jnp.mean(jnp.tanh((x * kept) @ w) ** 2)


@jax.jit
def train_step(w, x, key):
    return w - 0.1 * jax.grad(loss)(w, x, key)


def main():
    w, x = jnp.ones((32, 8)), jnp.ones((64, 32))
    key = jax.random.key(0)
    before = loss(w, x, key)
    for step in range(5):
        w = train_step(w, x, jax.random.fold_in(key, step))
    after = loss(w, x, jax.random.PRNGKey(1))  # JX104
    print(f"loss {before:.3f} to {after:.3f}")


if __name__ == "__main__":
    main()
