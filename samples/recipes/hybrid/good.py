"""Data is split over 4 devices and the model over 2, and the constraint splits the activations in the same
way: rows by data, columns by model.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
ACTIVATIONS = P("data", "model")


def placed(shape, *spec):
    return jax.device_put(jnp.full(shape, 0.01, jnp.float32), NamedSharding(mesh, P(*spec)))


@partial(jax.jit, donate_argnums=0)
def train_step(params, batch):
    def loss(params):
        hidden = jax.nn.relu(batch @ params["up"])
        hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, ACTIVATIONS))
        return jnp.mean((hidden @ params["down"]) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def main():
    params = {"up": placed((256, 1024), None, "model"), "down": placed((1024, 256), "model", None)}
    batch = placed((512, 256), "data", None)
    for _ in range(4):
        params = train_step(params, batch)
    print(f"mean {params['up'].mean():.4f}")


if __name__ == "__main__":
    main()
