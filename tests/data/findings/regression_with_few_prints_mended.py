# applies: fix-scan-between
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
def updates_between_prints(weights, opt_state):
    def update(carry, _):
        weights, opt_state = carry
        loss, grads = jax.value_and_grad(loss_fn)(weights)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(weights, updates), opt_state), loss

    return jax.lax.scan(update, (weights, opt_state), length=4000)


weights = jnp.zeros(3)
opt_state = jax.jit(optimizer.init)(weights)
for i in range(0, 40_000, 4000):
    (weights, opt_state), losses = updates_between_prints(weights, opt_state)
    print(f"{i:6d} {losses[0]:.5f}")
print(weights.round(3))
