# Mended: the counter starts with the type that comes back
# applies: fix-typed-array
import jax
import jax.numpy as jnp
import numpy as np
import optax

tx = optax.adam(1e-3)


@jax.jit
def step(state, x):
    params, opt_state, count = state
    grads = jax.grad(lambda p: ((x @ p) ** 2).mean())(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, jnp.where(jnp.isfinite(grads).all(), count + 1, 0).astype("int32")


params, x = jnp.ones((16, 4)), jnp.ones((8, 16))
state = params, jax.jit(tx.init)(params), jnp.int32(0)
for i in range(6):
    state = step(state, x)
