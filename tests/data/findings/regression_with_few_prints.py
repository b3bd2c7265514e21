# a small regression: 40,000 jitted steps of a few hundred operations, with a print in every 4,000th
import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-3)
rng = np.random.default_rng(0)
features = jnp.asarray(rng.normal(size=(64, 3)), jnp.float32)
targets = features @ jnp.array([1.0, -2.0, 0.5])


def loss_fn(weights):
    return jnp.mean((features @ weights - targets) ** 2)


@jax.jit
def update(weights, opt_state):
    loss, grads = jax.value_and_grad(loss_fn)(weights)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(weights, updates), opt_state, loss


weights = jnp.zeros(3)
opt_state = jax.jit(optimizer.init)(weights)
for i in range(40_000):
    weights, opt_state, loss = update(weights, opt_state)  # must: JX608 first ~ if i % 4000 == 0
    if i % 4000 == 0:
        print(f"{i:6d} {loss:.5f}")
print(weights.round(3))
