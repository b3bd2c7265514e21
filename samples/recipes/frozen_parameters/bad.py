"""Only the adapters of a model are trained, but the gradients of all parameters are computed: the other
updates are then set to 0.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZE, RANK = 1536, 4
optimizer = optax.adam(1e-3)


def loss(params, x):
    return jnp.mean((x @ params["base"] + x @ params["down"] @ params["up"] - x) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(params, state, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    updates, state = optimizer.update(grads, state)
    updates["base"] = jnp.zeros_like(updates["base"])
    return optax.apply_updates(params, updates), state, value


def main():
    params = {
        "base": jnp.eye(SIZE) * 0.9,
        "down": jnp.full((SIZE, RANK), jnp.float32(0.01)),
        "up": jnp.zeros((RANK, SIZE)),
    }
    state = jax.jit(optimizer.init)(params)
    batches = jax.random.normal(jax.random.key(0), (4, 32, SIZE))
    for x in np.asarray(batches):
        params, state, value = step(params, state, x)  # JX213
    print(f"loss {value:.4f}")


if __name__ == "__main__":
    main()
