# Mended: the data set is an argument
# applies: fix-pass-as-argument
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

images = jnp.asarray(np.random.default_rng(0).normal(size=(5000, 256)).astype("float32"))
net = nn.Dense(10)
params = jax.jit(net.init)(jax.random.key(0), images[:1])


@jax.jit
def train_step(params, images, i):
    batch = images[i]
    grads = jax.grad(lambda p: (net.apply(p, batch) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


rng = np.random.default_rng(1)
for _ in range(20):
    params = train_step(params, images, rng.integers(0, 5000, 32))
