# Mended: the function returns the features in parts
# applies: fix-return-as-constrained
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))


@partial(jax.jit, out_shardings=sharded)
def encode(images, projection):
    return jnp.tanh(images.reshape(images.shape[0], -1) @ projection)


@jax.jit
def train_head(w, features, y):
    features = jax.lax.with_sharding_constraint(features, sharded)
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((features @ w - y) ** 2))(w)
    return w - 0.1 * gradient, loss


key = jax.random.key(0)
projection = jax.device_put(jax.random.normal(key, (256, 512)) / 16, replicated)
batches = [jax.device_put(jax.random.normal(k, (1024, 16, 16)), replicated) for k in jax.random.split(key, 4)]
y = jax.device_put(jnp.ones((1024, 8)), sharded)
w = jax.device_put(jnp.zeros((512, 8)), replicated)
for images in batches:
    features = encode(images, projection)
    w, loss = train_head(w, features, y)
print(loss)
