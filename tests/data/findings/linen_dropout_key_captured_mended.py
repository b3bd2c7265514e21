# Mended: a key for each step
# applies: fix-pass-key
import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.Dropout(0.5, deterministic=False)(nn.Dense(32)(x)))


net = Net()
x = jnp.ones((8, 16))
params = jax.jit(net.init)({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x)
dropout_key = jax.random.key(2)


@jax.jit
def train_step(params, x, key, i):
    def loss(p):
        return (net.apply(p, x, rngs={"dropout": jax.random.fold_in(key, i)}) ** 2).mean()

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


for i in range(30):
    params = train_step(params, x, dropout_key, i)
