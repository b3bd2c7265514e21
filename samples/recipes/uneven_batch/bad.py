"""A batch of 29 rows is split over 8 devices: XLA pads it to 32 rows, and the last device computes mostly
padding.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def train_step(w, batch):
    batch = jax.lax.with_sharding_constraint(batch, NamedSharding(mesh, P("data")))  # JX504
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w = jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, P()))
    for _ in range(4):
        w = train_step(w, np.ones((29, 16), "float32"))
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
