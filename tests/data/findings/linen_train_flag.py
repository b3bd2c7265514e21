# flax linen: a static flag is on for training and off for evaluation: two programs, as wanted
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Dropout(0.1, deterministic=not train)(nn.Dense(32)(x))
        return nn.Dense(4)(x)


net = Net()
x = jnp.ones((8, 16))
params = jax.jit(net.init, static_argnames="train")(jax.random.key(0), x, train=False)


@partial(jax.jit, static_argnames="train")
def forward(params, x, key, train):
    return net.apply(params, x, train, rngs={"dropout": key}).sum()


for epoch in range(3):
    keys = jax.random.key(epoch)
    print(forward(params, x, keys, train=True), forward(params, x, keys, train=False))
