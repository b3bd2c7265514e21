# data parallelism on eight devices: each batch is put whole on every device, and only the step asks for a part of it
# never: also constrain the values
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))


@jax.jit
def train_step(w, x, y):
    x = jax.lax.with_sharding_constraint(x, sharded)  # must: JX503 first ~ jax\.device_put\(array, NamedSharding\(mesh, P\('data'\)\)\)
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * gradient, loss


w = jax.device_put(jnp.zeros((512, 8)), replicated)
xs = jax.device_put([jax.random.normal(jax.random.key(i), (1024, 512)) for i in range(4)], replicated)
y = jax.device_put(jnp.ones((1024, 8)), sharded)
for x in xs:
    w, loss = train_step(w, x, y)
print(loss)
