"""The batch is a multiple of the devices, and is placed on all of them before the step."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def train_step(w, batch):
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(w)
    return w - 0.1 * gradient


def main():
    w = jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, P()))
    for _ in range(4):
        w = train_step(w, jax.device_put(jnp.ones((32, 16)), NamedSharding(mesh, P("data"))))
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
