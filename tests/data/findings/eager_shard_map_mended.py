# Mended: shard_map outside jit: every operation is compiled by itself
# applies: fix-jit-this-call
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("i",))


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P("i", None), P("i", None)), out_specs=P("i", None))
def matmul(a, b):
    n = jax.lax.axis_size("i")
    out = jnp.zeros((a.shape[0], b.shape[1]))
    for s in range(n):
        j = (jax.lax.axis_index("i") + s) % n
        out = out + jax.lax.dynamic_slice_in_dim(a, j * b.shape[0], b.shape[0], 1) @ b
        b = jax.lax.ppermute(b, "i", [(k, (k + 1) % n) for k in range(n)])
    return out


a = jax.device_put(jnp.ones((16, 32)), jax.NamedSharding(mesh, P("i", None)))
b = jax.device_put(jnp.ones((32, 8)), jax.NamedSharding(mesh, P("i", None)))
for _ in range(3):
    c = matmul(a, b)
print(c.sum())
