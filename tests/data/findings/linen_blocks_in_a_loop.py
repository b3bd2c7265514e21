# ten equal blocks of Flax linen, each with parameters and dropout of its own, in a Python loop
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.Dense(64)(nn.gelu(nn.Dense(128)(nn.LayerNorm()(x))))
        return x + nn.Dropout(0.1, deterministic=False)(y)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(64)(x)
        for _ in range(10):
            x = Block()(x)  # must: JX202 first ~ nn.scan.lambda.*split_rngs=..params.: True, .dropout.: True.*length=10.*time of a call
        return nn.Dense(1)(x)


net, optimizer = Net(), optax.adam(1e-3)
x = jax.random.normal(jax.random.key(0), (32, 8))
keys = {"params": jax.random.key(1), "dropout": jax.random.key(2)}
params = jax.jit(net.init)(keys, x)
state = jax.jit(optimizer.init)(params)


@jax.jit
def step(params, state, key):
    def loss(params):
        return jnp.mean(net.apply(params, x, rngs={"dropout": key}) ** 2)

    value, slopes = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(slopes, state)
    return optax.apply_updates(params, updates), state, value


for i in range(4):
    params, state, value = step(params, state, jax.random.fold_in(jax.random.key(3), i))
print(value)
