"""Only the adapters of a model are trained: the loss is differentiated with respect to them alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZE, RANK = 1536, 4
optimizer = optax.adam(1e-3)


def loss(adapters, base, x):
    return jnp.mean((x @ base + x @ adapters["down"] @ adapters["up"] - x) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(adapters, state, base, x):
    value, grads = jax.value_and_grad(loss)(adapters, base, x)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(adapters, updates), state, value


def main():
    base = jnp.eye(SIZE) * 0.9
    adapters = {"down": jnp.full((SIZE, RANK), jnp.float32(0.01)), "up": jnp.zeros((RANK, SIZE))}
    state = jax.jit(optimizer.init)(adapters)
    batches = jax.random.normal(jax.random.key(0), (4, 32, SIZE))
    for x in np.asarray(batches):
        adapters, state, value = step(adapters, state, base, x)
    print(f"loss {value:.4f}")


if __name__ == "__main__":
    main()
