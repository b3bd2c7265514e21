# one jitted step
# applies: fix-jit-iteration, fix-jit-step
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


@jax.jit
def step(params, opt_state):
    grads = jax.grad(loss)(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state


for _ in range(500):
    params, opt_state = step(params, opt_state)
print(round(float(loss(params)), 3))
