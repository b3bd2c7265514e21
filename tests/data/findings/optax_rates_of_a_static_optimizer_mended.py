# Mended: a search over learning rates passes another optimizer as a static argument for each rate
# applies: fix-one-optimizer
from functools import partial

import jax
import jax.numpy as jnp
import optax


@partial(jax.jit, static_argnums=0)
def step(tx, params, opt_state, x):
    loss, grads = jax.value_and_grad(lambda p: ((x @ p) ** 2).mean())(params)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


x = jnp.ones((8, 16))
tx = optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)
for rate in (1e-3, 3e-3, 1e-2, 3e-2):
    params = jnp.ones((16, 4))
    opt_state = tx.init(params)
    opt_state.hyperparams["learning_rate"] = jnp.float32(rate)
    for _ in range(10):
        params, opt_state, loss = step(tx, params, opt_state, x)
    print(rate, float(loss))
