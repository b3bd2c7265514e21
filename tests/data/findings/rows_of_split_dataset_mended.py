# Mended: the batch is split over the devices again
# applies: fix-split-rows
# may: JX511
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)
by_row, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
images = jax.device_put(rng.normal(size=(4096, 64)).astype("float32"), by_row)
targets = jax.device_put(rng.normal(size=(4096, 8)).astype("float32"), by_row)
sizes = (64, 256, 256, 8)
params = [rng.normal(size=s).astype("float32") / s[0] ** 0.5 for s in zip(sizes[:-1], sizes[1:], strict=True)]
params = jax.device_put(params, whole)


def predict(params, x):
    for w in params[:-1]:
        x = jnp.tanh(x @ w)
    return x @ params[-1]


@jax.jit
def train_step(params, images, targets, key):
    index = jax.random.randint(key, (1024,), 0, 4096)
    x, y = images[index], targets[index]
    x, y = jax.lax.with_sharding_constraint((x, y), by_row)
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


for step in range(100):
    params, loss = train_step(params, images, targets, jax.random.key(step))
print(float(loss))
