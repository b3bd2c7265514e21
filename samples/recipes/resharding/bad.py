"""Rows are split over all devices, and then columns over one axis of the mesh: for this change, XLA gathers
the whole array.
"""

# jaxscope run --tee-stderr bad.py

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


@jax.jit
def forward(x):
    x = jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P(("data", "model"), None)))  # JX402
    return jax.lax.with_sharding_constraint(jnp.cos(x), NamedSharding(mesh, P(None, "model")))


def main():
    x = jnp.ones((64, 64))
    for _ in range(3):
        y = forward(x)
    print(f"mean {y.mean():.3f}")


if __name__ == "__main__":
    main()
