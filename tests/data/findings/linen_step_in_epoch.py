# flax linen: each epoch defines its jitted step anew
import flax.linen as nn
import jax
import jax.numpy as jnp

net = nn.Sequential([nn.Dense(64), nn.relu, nn.Dense(4)])
x = jnp.ones((8, 16))
params = jax.jit(net.init)(jax.random.key(0), x)


def train_epoch(params, lr):
    @jax.jit
    def step(params, x):
        grads = jax.grad(lambda p: (net.apply(p, x) ** 2).mean())(params)
        return jax.tree.map(lambda p, g: p - lr * g, params, grads)

    for _ in range(10):
        params = step(params, x)  # must: JX110 first
    return params


for epoch in range(5):
    params = train_epoch(params, 0.1 / (epoch + 1))
