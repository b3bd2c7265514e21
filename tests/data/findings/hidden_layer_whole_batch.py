# a helper constrains the hidden layer with None for the batch, so that each group of devices computes all of it
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def shard(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))  # must: JX515 first ~ 'data'


def block(p, x):
    h = jnp.einsum("btd,dh->bth", x, p["up"])
    h = shard(h, None, None, "model")
    return x + jnp.einsum("bth,hd->btd", jax.nn.gelu(h), p["down"])


def loss(layers, x, y):
    x, _ = jax.lax.scan(lambda x, p: (block(p, x), None), x, layers)
    return jnp.mean((x - y) ** 2)


@jax.jit
def step(layers, x, y):
    value, grads = jax.value_and_grad(loss)(layers, x, y)
    return jax.tree.map(lambda p, g: p - 1e-2 * g, layers, grads), value


def normal(key, shape, *spec):
    return jax.device_put(0.05 * jax.random.normal(key, shape), NamedSharding(mesh, P(*spec)))


keys = jax.random.split(jax.random.key(0), 4)
layers = {
    "up": normal(keys[0], (3, 64, 256), None, None, "model"),
    "down": normal(keys[1], (3, 256, 64), None, "model", None),
}
x, y = normal(keys[2], (32, 8, 64), "data"), normal(keys[3], (32, 8, 64), "data")
for _ in range(6):
    layers, value = step(layers, x, y)
print(value)
