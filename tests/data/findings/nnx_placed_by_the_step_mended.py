# Mended: the model and the optimizer are on the mesh before the first step
# applies: fix-place-object
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))
rng = np.random.default_rng(0)


@nnx.jit
def train_step(model, optimizer, x, y):
    grads = nnx.grad(lambda m: jnp.mean((nnx.relu(m(x)) - y) ** 2))(model)
    optimizer.update(model, grads)


@nnx.jit
def make():
    model = nnx.Linear(64, 32, rngs=nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


model, optimizer = jax.device_put(make(), NamedSharding(mesh, P()))
for _ in range(10):
    x = rng.normal(size=(64, 64)).astype("float32")
    x, y = jax.device_put((x, x[:, :32]), NamedSharding(mesh, P("data")))
    train_step(model, optimizer, x, y)
print(model.kernel[0, 0])
