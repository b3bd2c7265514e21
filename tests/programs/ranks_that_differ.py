"""A job of several processes; the last rank does something else: const, shape, or nothing."""

import sys

import jax

jax.distributed.initialize()

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

how = sys.argv[1] if len(sys.argv) > 1 else ""
ranks = jax.process_count()
odd = jax.process_index() == ranks - 1
sharding = NamedSharding(jax.make_mesh((jax.device_count(),), ("data",)), PartitionSpec("data"))
scale = 2.0 if how == "const" and odd else 1.0


def ones(size):
    whole = np.ones(size, "float32")
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


@jax.jit
def step(x):
    return jnp.sum(x * scale)


value = step(ones(16 * ranks if how == "shape" and odd else 8 * ranks))
print("value", float(value.addressable_data(0)))
