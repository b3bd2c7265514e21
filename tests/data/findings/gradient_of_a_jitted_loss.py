# the loss is jitted, its gradient and the update are not: one jitted step can have all of it
# never: cannot take in the whole
import jax
import jax.numpy as jnp
import optax

x = jax.random.normal(jax.random.key(0), (500, 20))
y = jnp.sin(x[:, 0])


@jax.jit
def loss(c):
    return jnp.mean((x @ c - y) ** 2)


optimizer = optax.adam(1e-2)
params = jnp.ones(20)
opt_state = optimizer.init(params)
for _ in range(500):
    grads = jax.grad(loss)(params)
    updates, opt_state = optimizer.update(grads, opt_state)  # must: JX133|JX605 first ~ into one jitted function
    params = optax.apply_updates(params, updates)
print(round(float(loss(params)), 3))
