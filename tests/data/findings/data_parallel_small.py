# eight devices, data parallel: replicated parameters and moments of 4 MiB, which nobody has to shard or donate
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def step(state, x):
    grads = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(state["w"])
    moment = 0.9 * state["moment"] + grads
    return {"w": state["w"] - 0.1 * moment, "moment": moment}


state = jax.device_put(
    {"w": jnp.ones((512, 1024)), "moment": jnp.zeros((512, 1024))}, NamedSharding(mesh, P())
)
x = jax.device_put(jnp.ones((64, 512)), NamedSharding(mesh, P("data")))
for _ in range(10):
    state = step(state, x)
print(state["w"].sum())
