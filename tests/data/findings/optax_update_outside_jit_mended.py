# Mended: the update is jitted with the gradient
# applies: fix-jit-this-call
import jax
import jax.numpy as jnp
import optax

params = {f"w{i}": jnp.ones((16, 16)) for i in range(6)}
tx = optax.adamw(1e-3)
opt_state = tx.init(params)


@jax.jit
def step(params, opt_state, x):
    grads = jax.grad(lambda p: sum(((x @ w) ** 2).mean() for w in p.values()))(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


x = jnp.ones((8, 16))
for i in range(20):
    params, opt_state = step(params, opt_state, x)
