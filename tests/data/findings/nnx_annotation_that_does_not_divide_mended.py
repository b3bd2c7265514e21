# applies: fix-pad-or-shard-other
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


class MLP(nnx.Module):
    def __init__(self, rngs):
        w1 = jax.random.normal(rngs.params(), (1, 32))
        w2 = jax.random.normal(rngs.params(), (32, 1))
        split = NamedSharding(mesh, P(None, "model"))
        self.w1 = nnx.Param(jax.lax.with_sharding_constraint(w1, split))
        self.w2 = nnx.Param(jax.lax.with_sharding_constraint(w2, NamedSharding(mesh, P("model"))))

    def __call__(self, x):
        return nnx.relu(x @ self.w1) @ self.w2


@nnx.jit
def create():
    return MLP(nnx.Rngs(0))


@nnx.jit
def train_step(model, x, y):
    loss, grads = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
    nnx.update(model, jax.tree.map(lambda p, g: p - 0.01 * g, nnx.state(model, nnx.Param), grads))
    return loss


model = create()
rows = NamedSharding(mesh, P("data"))
x, y = jax.device_put((np.ones((32, 1), "float32"), np.ones((32, 1), "float32")), rows)
losses = [train_step(model, x, y) for _ in range(10)]
print(losses[-1])
