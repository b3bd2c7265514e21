# applies: fix-use-axis
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(("data", "model")))
optimizer = optax.sgd(1e-2, momentum=0.9)


def predict(params, x):
    for w in params[:-1]:
        x = jax.nn.relu(x @ w)
    return x @ params[-1]


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def step(params, state, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


rng = np.random.default_rng(0)
sizes = (64, 256, 256, 8)
params = [rng.normal(0, 0.1, s).astype("float32") for s in zip(sizes[:-1], sizes[1:], strict=True)]
params = jax.device_put(params, whole)
state = jax.device_put(optimizer.init(params), whole)
for _ in range(8):
    x = rng.normal(size=(128, 64)).astype("float32")
    x, y = jax.device_put((x, x[:, :8]), split)
    params, state, value = step(params, state, x, y)
print(value)
