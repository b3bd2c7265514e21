# Mended: one optimizer
# applies: fix-one-optimizer
from functools import partial

import jax
import jax.numpy as jnp
import optax


@partial(jax.jit, static_argnums=0)
def step(tx, params, opt_state, x):
    grads = jax.grad(lambda p: ((x @ p) ** 2).mean())(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state


params, x = jnp.ones((16, 4)), jnp.ones((8, 16))
opt_state = optax.adam(1e-3).init(params)
tx = optax.adam(1e-3)
for epoch in range(4):
    for _ in range(5):
        params, opt_state = step(tx, params, opt_state, x)
