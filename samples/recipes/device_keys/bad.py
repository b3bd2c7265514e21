"""All devices draw random numbers from the same key: each device drops the same units for its part of the batch."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("data"), P(), P()), out_specs=P())
def train_step(w, x, key, step):
    kept = jax.random.bernoulli(jax.random.fold_in(key, step), 0.9, x.shape)
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh((x * kept) @ w) ** 2))(w)
    return w - 0.1 * gradient / jax.lax.axis_size("data")


def main():
    w, x = np.ones((32, 8), "f4"), np.ones((64, 32), "f4")
    w, key = jax.device_put((w, jax.random.key(0)), jax.sharding.NamedSharding(mesh, P()))
    x = jax.device_put(x, jax.sharding.NamedSharding(mesh, P("data")))
    for step in range(10):
        w = train_step(w, x, key, np.int32(step))  # JX136
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
