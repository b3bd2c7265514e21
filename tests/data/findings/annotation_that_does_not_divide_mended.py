# Mended: w2 is asked for as P(None, 'model') but has one column: replicated by the first program, split by the second: two compilations of train_step
# applies: fix-pad-or-shard-other
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


@jax.jit
def create(key):
    w1 = jax.lax.with_sharding_constraint(
        jax.random.normal(key, (1, 32)), jax.NamedSharding(mesh, P(None, "model"))
    )
    w2 = jax.lax.with_sharding_constraint(
        jax.random.normal(jax.random.fold_in(key, 1), (32, 1)), jax.NamedSharding(mesh, P("model", None))
    )
    return {"w1": w1, "w2": w2}


@jax.jit
def train_step(p, x, y):
    loss, g = jax.value_and_grad(lambda p: ((jax.nn.relu(x @ p["w1"]) @ p["w2"] - y) ** 2).mean())(p)
    return jax.tree.map(lambda a, b: a - 0.01 * b, p, g), loss


p = create(jax.random.key(0))
s = jax.NamedSharding(mesh, P("data"))
losses = []
for i in range(100):
    x, y = jax.device_put((jnp.ones((32, 1)), jnp.ones((32, 1))), s)
    p, loss = train_step(p, x, y)
    losses.append(float(loss))  # may: JX601
print(losses[-1])
