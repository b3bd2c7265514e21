# Mended: all rays are computed at once
# applies: fix-without-chunks
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZES = (24, 64, 64, 4)


def network(params, points):
    for w, b in params[:-1]:
        points = jax.nn.relu(points @ w + b)
    return points @ params[-1][0] + params[-1][1]


def render(params, points):
    encoded = jnp.concatenate([f(points * 2.0**i) for i in range(4) for f in (jnp.sin, jnp.cos)], axis=-1)
    return jax.nn.sigmoid(network(params, encoded)[:, :3])


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, points, image):
    def loss(params):
        return jnp.mean((render(params, points) - image) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


rng, optimizer = np.random.default_rng(0), optax.adam(1e-3)
layers = zip(SIZES, SIZES[1:])
params = [(rng.normal(size=s).astype(np.float32) * 0.1, np.zeros(s[1], np.float32)) for s in layers]
params = jax.device_put(params)
state = jax.jit(optimizer.init)(params)
points, image = rng.uniform(size=(2, 1600, 3)).astype(np.float32)
for step in range(10):
    params, state, value = train_step(params, state, points, image)
print(value)
