# Mended: an ordinary argument
# applies: fix-ordinary-argument
import jax
import jax.numpy as jnp
import optax


@jax.jit
def step(params, x, lr):
    tx = optax.sgd(lr)
    grads = jax.grad(lambda p: ((x @ p) ** 2).mean())(params)
    updates, _ = tx.update(grads, tx.init(params))
    return optax.apply_updates(params, updates)


params, x = jnp.ones((16, 4)), jnp.ones((8, 16))
for i in range(6):
    params = step(params, x, lr=0.1 * 0.9**i)
