"""The same mean over four CPU devices, written with `jax.pmap` and with `jax.shard_map`."""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:4]), ("i",))


@partial(jax.pmap, axis_name="i")
def pmapped(x):
    return x - jax.lax.pmean(x, "i")


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def shard_mapped(x):
    return x - jax.lax.pmean(x, "i")


def main():
    x = jnp.arange(32.0).reshape(4, 8)
    for _ in range(3):
        a = pmapped(x)
        b = shard_mapped(x)
    same = bool(jnp.allclose(a, b))
    shorter = shard_mapped(x[:, :4])
    print(f"pmap and shard_map: same {same}, shapes {a.shape} {shorter.shape}")


if __name__ == "__main__":
    main()
