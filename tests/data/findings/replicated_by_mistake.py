# one table of three is whole on all eight devices, the others are sharded
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
specs = {"up": P(None, "model"), "down": P("model", None), "embedding": P()}
shapes = {"up": (512, 4096), "down": (4096, 512), "embedding": (40960, 512)}
shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}


@partial(jax.jit, out_shardings=shardings)
def create():
    return {name: jnp.ones(shape) for name, shape in shapes.items()}


@partial(jax.jit, donate_argnums=0, out_shardings=shardings)
def step(params, x):
    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["up"]) @ p["down"]) ** 2) + jnp.mean((x @ p["embedding"].T) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


params = create()
x = jax.device_put(jnp.ones((4, 512)), NamedSharding(mesh, P()))
for _ in range(4):
    params = step(params, x)  # must: JX502 first ~ params\['embedding'\] .*But each call .* to each device: up to 70.0 MiB
print(params["up"].sum())
