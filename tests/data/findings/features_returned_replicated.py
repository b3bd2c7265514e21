# eight devices: one jitted function returns features whole on every device, the next wants a part of them on each
# never: also constrain the values
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))


@jax.jit
def encode(images, projection):
    return jnp.tanh(images.reshape(images.shape[0], -1) @ projection)


@jax.jit
def train_head(w, features, y):
    features = jax.lax.with_sharding_constraint(features, sharded)  # must: JX503 first ~ in encode, which computes features, give the results the sharding NamedSharding\(mesh, P\('data'\)\), with out_shardings
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((features @ w - y) ** 2))(w)
    return w - 0.1 * gradient, loss


key = jax.random.key(0)
projection = jax.device_put(jax.random.normal(key, (256, 512)) / 16, replicated)
batches = [jax.device_put(jax.random.normal(k, (1024, 16, 16)), replicated) for k in jax.random.split(key, 4)]
y = jax.device_put(jnp.ones((1024, 8)), sharded)
w = jax.device_put(jnp.zeros((512, 8)), replicated)
for images in batches:
    features = encode(images, projection)  # may: JX512
    w, loss = train_head(w, features, y)
print(loss)
