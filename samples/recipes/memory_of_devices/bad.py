"""The batch is on all devices, but the table was created without a sharding: all of it is on the first device."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxscope

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def look_up(table, batch):
    return batch @ table


def main():
    table = jnp.ones((4096, 1024))  # JX509
    for _ in range(4):
        batch = jax.device_put(jnp.ones((56, 4096)), NamedSharding(mesh, P("data")))
        found = look_up(table, batch)  # JX508
        jaxscope.step()
    jaxscope.snapshot()
    print(f"mean {found.mean():.3f}")


if __name__ == "__main__":
    main()
