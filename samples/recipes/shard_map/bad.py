"""``shard_map`` is called outside jit: each of its operations and collectives is compiled and started
separately.
"""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("i",))


@jax.shard_map(mesh=mesh, in_specs=(P("i", None), P("i", None)), out_specs=P("i", None))
def product(a, b):
    """Multiply by a ring: each device has a piece of ``b`` and passes it on (ppermute)."""
    n = jax.lax.axis_size("i")
    out = jnp.zeros((a.shape[0], b.shape[1]))
    for s in range(n):
        j = (jax.lax.axis_index("i") + s) % n
        out = out + jax.lax.dynamic_slice_in_dim(a, j * b.shape[0], b.shape[0], 1) @ b
        b = jax.lax.ppermute(b, "i", [(k, (k + 1) % n) for k in range(n)])
    return out


def main():
    a = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, P("i", None)))
    b = jax.device_put(jnp.ones((32, 8)), NamedSharding(mesh, P("i", None)))
    for _ in range(3):
        c = product(a, b)  # JX133
    print(f"mean {c.mean():.3f}")


if __name__ == "__main__":
    main()
