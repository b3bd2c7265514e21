# an ensemble whose members are trained one after the other, outside jit: vmap trains all of them at once
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


rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, (256, 1)).astype("float32")
y = np.sin(x)
net, optimizer = Net(), optax.adam(1e-2)
init = jax.jit(net.init)
params = [init(jax.random.key(i), x[:1]) for i in range(MEMBERS)]
states = [optimizer.init(p) for p in params]
for epoch in range(40):
    losses = []
    for i in range(MEMBERS):
        rows = rng.choice(256, 64)
        value, gradient = jax.value_and_grad(loss)(params[i], x[rows], y[rows])  # must: JX605 first ~ Still better.*params and states.*jax\.vmap
        updates, states[i] = optimizer.update(gradient, states[i])
        params[i] = optax.apply_updates(params[i], updates)
        losses.append(value)
print(float(np.mean(jax.device_get(losses))))
