# Mended: the parameters of all members are stacked, and one jitted call trains all members
# applies: fix-jit-step, fix-or-vmap-over-items
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

MEMBERS = 6


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.tanh(nn.Dense(32)(x))
        return nn.Dense(1)(x)


def loss(params, x, y):
    return jnp.mean((net.apply(params, x) - y) ** 2)


@jax.jit
@jax.vmap
def step(params, state, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(params, updates), state, value


rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, (256, 1)).astype("float32")
y = np.sin(x)
net, optimizer = Net(), optax.adam(1e-2)
init = jax.jit(net.init)
params = [init(jax.random.key(i), x[:1]) for i in range(MEMBERS)]
states = [optimizer.init(p) for p in params]
params = jax.tree.map(lambda *a: jnp.stack(a), *params)
states = jax.tree.map(lambda *a: jnp.stack(a), *states)
for epoch in range(40):
    rows = np.stack([rng.choice(256, 64) for _ in range(MEMBERS)])
    params, states, losses = step(params, states, x[rows], y[rows])
print(float(np.mean(jax.device_get(losses))))
