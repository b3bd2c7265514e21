# a Flax model with NumPy parameters, as from a file, samples outside jit
# never: pad the arrays|jit.Block
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.gelu(nn.GroupNorm(num_groups=8)(nn.Conv(self.width, (3, 3))(x)))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, t):
        for width in (32, 64, 128):
            x = Block(width)(x) + jnp.sin(t)[:, None, None, None]
        return nn.Conv(1, (1, 1))(x)


model = Net()
params = jax.jit(model.init)(jax.random.key(0), jnp.ones((1, 16, 16, 1)), jnp.ones(1))
params = jax.tree.map(np.asarray, params)
z = jax.random.normal(jax.random.key(1), (2, 16, 16, 1))
for t in range(60):
    z = z - 0.01 * model.apply(params, z, jnp.array([t]))  # must: JX133|JX605 first ~ jax.jit.model.apply
print(round(float(jnp.abs(z).mean()), 2))
