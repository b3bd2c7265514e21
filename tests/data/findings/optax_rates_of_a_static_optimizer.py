# optax: a search over learning rates passes another optimizer as a static argument for each rate
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
for rate in (1e-3, 3e-3, 1e-2, 3e-2):
    params, tx = jnp.ones((16, 4)), optax.adam(rate)
    opt_state = tx.init(params)
    for _ in range(10):
        params, opt_state, loss = step(tx, params, opt_state, x)  # must: JX108 first ~ inject_hyperparams
    print(rate, float(loss))
