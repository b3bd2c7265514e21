"""Arrays placed in every way there is on eight devices, looked at once; prints what each device holds."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import jaxscope

devices = jax.devices()
line = Mesh(np.array(devices), ("data",))
plane = Mesh(np.array(devices).reshape(4, 2), ("data", "model"))
back = Mesh(np.array(devices[::-1]).reshape(2, 2, 2), ("a", "b", "c"))


def put(shape, mesh, *spec, **more):
    return jax.device_put(np.zeros(shape, "float32"), NamedSharding(mesh, P(*spec), **more))


def main():
    batch = put((64, 16), line, "data")
    tensor = {"up": put((16, 32), plane, None, "model"), "down": put((32, 16), plane, "model", None)}
    fsdp = [put((128, 4), line, "data"), put((8,), line, "data")]
    hybrid = put((16, 8), plane, "data", "model")
    both = put((16, 8), plane, ("model", "data"))
    turned = put((4, 8), back, "b", ("c", "a"))
    mapped = jax.pmap(lambda x: x * 2)(np.ones((8, 4), "float32"))
    # 17 rows do not go round: JAX leaves the result whole on every device
    uneven = jax.jit(lambda x: jax.lax.with_sharding_constraint(x + 1, NamedSharding(line, P("data"))))(
        jnp.ones((17, 4))
    )
    mistake = put((1024,), plane)
    pinned = jax.device_put(
        np.ones((32,), "float32"), SingleDeviceSharding(devices[0], memory_kind="pinned_host")
    )
    first, second = (
        jax.device_put(np.ones(3, "int8"), devices[0]),
        jax.device_put(np.ones(3, "int8"), devices[5]),
    )
    # As XLA spells it, without a mesh: where JAX finds no mesh for a result, it has such a one.
    tiles = jax.device_put(
        np.zeros((16, 4), "float32"),
        GSPMDSharding(tuple(devices), NamedSharding(plane, P(None, "model"))._to_xla_hlo_sharding(2)),
    )
    free = jnp.ones((2, 2))
    seen = {
        "batch": batch, "tensor['up']": tensor["up"], "tensor['down']": tensor["down"], "hybrid": hybrid,
        "both": both, "turned": turned, "mapped": mapped, "uneven": uneven, "mistake": mistake,
        "pinned": pinned, "tiles": tiles, "first": first, "second": second, "free": free,
    }  # fmt: skip
    jaxscope.snapshot()
    truth = {
        name: [
            [s.device.id, [list(i.indices(n)[:2]) for i, n in zip(s.index, a.shape, strict=True)]]
            for s in a.addressable_shards
        ]
        for name, a in seen.items()
    }
    copied = [np.asarray(batch), float(mistake[0]), str(uneven), np.asarray(first), jax.device_get(free)]
    print(json.dumps(truth))
    jaxscope.snapshot()  # once more: the parts that were looked at are alive now, and no further memory
    assert fsdp and copied


main()
