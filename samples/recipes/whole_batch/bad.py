"""A sharding constraint has None for the axis of the batch, which is split over 2 of 4 devices: each pair
of devices computes the whole batch.
"""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def put(x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


@jax.jit
def layer(params, x):
    h = x @ params["up"]
    h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P(None, "model")))  # JX515
    return jax.nn.relu(h) @ params["down"]


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    up, down = jax.random.normal(keys[0], (128, 512)) / 11, jax.random.normal(keys[1], (512, 128)) / 23
    params = {"up": put(up, None, "model"), "down": put(down, "model", None)}
    x = put(jax.random.normal(keys[2], (256, 128)), "data")
    for _ in range(4):
        y = layer(params, x)
    print(f"mean square {jnp.mean(y**2):.3f}")


if __name__ == "__main__":
    main()
