# optax: only the gradient is jitted
import jax
import jax.numpy as jnp
import optax

params = {f"w{i}": jnp.ones((16, 16)) for i in range(6)}
tx = optax.adamw(1e-3)
opt_state = tx.init(params)
grad = jax.jit(jax.grad(lambda p, x: sum(((x @ w) ** 2).mean() for w in p.values())))
x = jnp.ones((8, 16))
for i in range(20):
    updates, opt_state = tx.update(grad(params, x), opt_state, params)  # must: JX133 first
    params = optax.apply_updates(params, updates)  # may: JX133
