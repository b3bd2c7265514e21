# Mended: the loss is computed in float32
# applies: fix-add-in-float32
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (64, 64):
            x = nn.relu(nn.Dense(width, dtype=jnp.bfloat16)(x))
        return nn.Dense(4, dtype=jnp.bfloat16)(x)


net, optimizer = Net(), optax.sgd(0.05)


@jax.jit
def loss(params, x, y):
    logits = net.apply(params, x).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def train_step(params, state, x, y):
    grads = jax.grad(lambda p: loss(p, x, y))(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state


rng = np.random.default_rng(0)
x = rng.normal(size=(600, 32, 16)).astype(np.float32)
y = (x[..., 0] > 0).astype(np.int32) + 2 * (x[..., 1] > 0).astype(np.int32)
params = jax.jit(net.init)(jax.random.key(0), x[0])
state = optimizer.init(params)
for n in range(200):
    params, state = train_step(params, state, x[n], y[n])

total = 0.0
for n in range(200, 600):
    total += loss(params, x[n], y[n])
print("validation loss", float(total) / 400)
