# Mended: one step for all epochs, the rate is its argument
# applies: fix-define-once
import flax.linen as nn
import jax
import jax.numpy as jnp

net = nn.Sequential([nn.Dense(64), nn.relu, nn.Dense(4)])
x = jnp.ones((8, 16))
params = jax.jit(net.init)(jax.random.key(0), x)


@jax.jit
def step(params, x, lr):
    grads = jax.grad(lambda p: (net.apply(p, x) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)


def train_epoch(params, lr):
    for _ in range(10):
        params = step(params, x, lr)
    return params


for epoch in range(5):
    params = train_epoch(params, 0.1 / (epoch + 1))
