"""The result of optax.apply_updates is not used: the parameters do not change."""

import jax
import jax.numpy as jnp
import optax

OPTIMIZER = optax.sgd(0.1)


@jax.jit
def train_step(w, state, x, y):
    grads = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    updates, state = OPTIMIZER.update(grads, state)
    optax.apply_updates(w, updates)  # JX140
    return w, state


def main():
    w, x = jnp.zeros(32), jnp.ones((64, 32))
    state = jax.jit(OPTIMIZER.init)(w)
    for _ in range(10):
        w, state = train_step(w, state, x, x.sum(1))
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
