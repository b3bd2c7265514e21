"""Arrays that share memory in every way there is, on eight devices, looked at one way after the other."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import jaxscope

devices = jax.devices()
line = Mesh(np.array(devices), ("d",))
plane = Mesh(np.array(devices).reshape(4, 2), ("a", "b"))
half, other = Mesh(np.array(devices[:4]), ("d",)), Mesh(np.array(devices[2:6]), ("d",))


def split(n=64, mesh=line, *spec):
    return jax.device_put(np.arange(n, dtype="float32"), NamedSharding(mesh, P(*spec or ("d",))))


def main():
    # Parts beside their whole, parts that outlive it, and two wholes of one call of which one is gone.
    whole = split()
    parts = [s.data for s in whole.addressable_shards]
    jaxscope.snapshot()
    outlived = split(64).addressable_data(3)
    twins = jax.jit(lambda x: (x + 1, x + 2))(whole)
    of_first = twins[0].addressable_data(1)
    second = twins[1]
    del twins
    jaxscope.snapshot()
    # The same buffers under other names.
    alone = jnp.ones(1000)
    committed = jax.device_put(alone, devices[0])
    copied = jnp.array(alone, copy=True)
    replicated = jax.device_put(alone, NamedSharding(line, P()))
    again = jax.device_put(replicated, NamedSharding(plane, P()))
    clone = whole.clone()
    jaxscope.snapshot()
    # Wholes that were put together of pieces, and lie together on some devices alone.
    pieces = {d.id: jax.device_put(np.full(8, d.id, "float32"), d) for d in devices[:6]}
    left = jax.make_array_from_single_device_arrays(
        (32,), NamedSharding(half, P("d")), [pieces[i] for i in range(4)]
    )
    right = jax.make_array_from_single_device_arrays(
        (32,), NamedSharding(other, P("d")), [pieces[i] for i in range(2, 6)]
    )
    jaxscope.snapshot()
    del pieces
    jaxscope.snapshot()
    # Held by nothing that is looked through, of the same line and form as what has a name.
    kept, hidden = [], []
    for i in range(20):
        (kept if i % 2 else hidden).append(jnp.full((1000,), float(i)))
    hidden = iter(hidden)
    jaxscope.snapshot()
    # Named arrays of the form of a part of another, made by one call.
    host = {"a": np.ones(4096, "float32"), "b": np.ones(4096, "float32"), "c": np.ones(8 * 4096, "float32")}
    state = jax.device_put(
        host, {"a": NamedSharding(line, P()), "b": devices[0], "c": NamedSharding(line, P("d"))}
    )
    jaxscope.snapshot()
    # Forms of all kinds.
    odd = [
        jnp.ones(1001, jnp.int4), jnp.ones(64, jnp.uint4), jnp.ones(7, jnp.float8_e4m3fn), jnp.ones((0, 3)),
        jnp.ones((), bool), jax.random.key(0), jax.random.split(jax.random.key(1), 5),
        jax.device_put(
            np.ones(100, "complex64"), SingleDeviceSharding(devices[2], memory_kind="pinned_host")
        ),
        jax.pmap(lambda x: x * 2)(np.ones((8, 4), "float32")), split(8),
        jax.device_put(jnp.ones((8, 16), jnp.int4), NamedSharding(line, P("d"))),
        jax.device_put(np.ones((4, 6), "float32"), NamedSharding(plane, P("a", "b"))),
        jax.device_put(np.ones(3, "int8"), NamedSharding(Mesh(np.array(devices[5:6]), ("d",)), P())),
    ]  # fmt: skip
    jaxscope.snapshot()
    # Deleted, donated, computed this moment, and read.
    gone = jnp.ones(77)
    gone.delete()
    given = jax.jit(lambda x: x + 1, donate_argnums=0)(split(640))
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 2000, lambda i, v: jnp.sin(v) + x, x))(split(80_000))
    jaxscope.snapshot()
    _ = np.asarray(whole), str(given), float(slow[0]), jax.device_get(state), [a + 0 for a in odd[:3]]
    ref = jax.new_ref(jnp.ones(50)) if hasattr(jax, "new_ref") else None
    jaxscope.snapshot()
    jax.jit(lambda x: jax.debug.print("{}", x, ordered=True))(1.0)
    jax.effects_barrier()
    jaxscope.snapshot()
    del whole, second, left
    jaxscope.snapshot()
    return parts, outlived, of_first, committed, copied, again, clone, right, kept, hidden, ref


main()
