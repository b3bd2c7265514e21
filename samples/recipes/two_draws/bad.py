"""One key is used for two random draws: the noise of an image depends on its time."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x, key):
    time = jax.random.uniform(key, (len(x), 1))
    noise = jax.random.normal(key, x.shape)  # JX137

    def loss(w):
        return jnp.mean((((1 - time) * x + time * noise) @ w - noise) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x = jnp.zeros((32, 32)), jnp.ones((64, 32))
    for step in range(10):
        w = train_step(w, x, jax.random.fold_in(jax.random.key(0), step))
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
