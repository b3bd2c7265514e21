"""A vocabulary of 1,001 words cannot be split evenly over 8 devices: JAX drops the sharding constraint, and
each device has the whole table.
"""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
WORDS, WIDTH = 1001, 64


@jax.jit
def initial(key):
    table = jax.random.normal(key, (WORDS, WIDTH))
    return jax.lax.with_sharding_constraint(table, NamedSharding(mesh, P("model")))  # JX503


@jax.jit
def embed(table, tokens):
    return table[tokens].mean(axis=1)


def main():
    table = initial(jax.random.key(0))
    tokens = jax.device_put(jnp.ones((32, 16), jnp.int32), NamedSharding(mesh, P()))
    print(f"mean {embed(table, tokens).mean():.3f}, on each device {table.addressable_shards[0].data.shape}")


if __name__ == "__main__":
    main()
