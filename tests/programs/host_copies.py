"""Every way between host and devices, one a line; what is behind the arrow is what must be found of it.

``direction kind count bytes`` for 3 turns; bytes of all devices together. Four devices.
"""

import copy
import json
import logging
import pickle
import pprint

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("d",))
split, whole = NamedSharding(mesh, PartitionSpec("d")), NamedSharding(mesh, PartitionSpec())
double = jax.jit(lambda x: x * 2)
one, square = jnp.ones(()), jnp.ones((8, 8))
parts = double(jax.jit(lambda: jnp.ones((8, 8)), out_shardings=split)())


def scalar():
    return double(one)


def matrix():
    return double(square)


def spread():
    return double(parts)


for _ in range(3):
    float(scalar())  # -> device_to_host float 3 12
    int(scalar())  # -> device_to_host int 3 12
    bool(scalar())  # -> device_to_host bool 3 12
    complex(scalar())  # -> device_to_host complex 3 12
    y = scalar()
    float(y)  # -> device_to_host float 3 12
    float(y)
    y.item()
    scalar().item()  # -> device_to_host item 3 12
    y = scalar()
    y.item()  # -> device_to_host item 3 12
    y.item() + float(y)
    if scalar() > 1:  # -> device_to_host bool 3 3
        pass
    matrix().tolist()  # -> device_to_host tolist 3 768
    matrix().tobytes()  # -> device_to_host tobytes 3 768
    str(matrix())  # -> device_to_host print 3 768
    repr(scalar())  # -> device_to_host print 3 12
    f"{scalar():.2f}"  # -> device_to_host format 3 12
    logging.warning("%s", scalar())  # -> device_to_host print 3 12
    pprint.pformat({"loss": scalar()})  # -> device_to_host print 3 12
    json.dumps({"loss": float(scalar())})  # -> device_to_host float 3 12
    jax.device_get({"a": matrix(), "b": [matrix()]})  # -> device_to_host device_get 6 1536
    pickle.dumps(matrix())  # -> device_to_host pickle 3 768
    copy.deepcopy(one)
    ["a", "b", "c"][double(jnp.int32(1) * 1)]  # -> device_to_host int 3 12
    [float(v) for v in (scalar(), scalar())]  # -> device_to_host float 6 24
    np.asarray(spread())  # -> device_to_host np.asarray 3 768
    spread().tolist()  # -> device_to_host tolist 3 768
    str(spread())  # -> device_to_host print 3 768
    jax.device_get(spread())  # -> device_to_host device_get 3 768
    float(spread().sum())  # -> device_to_host float 3 12
    jax.device_put(np.ones((8, 8), "float32"))  # -> host_to_device device_put 3 768
    jax.device_put(np.ones((8, 8), "float32"), split)  # -> host_to_device device_put 3 768
    jax.device_put(np.ones((8, 8), "float32"), whole)  # -> host_to_device device_put 3 3072
    jax.device_put(square, jax.devices()[2])  # -> device_to_device device_put 3 768
    jax.device_put(square, whole)  # -> device_to_device device_put 3 2304
    jax.device_put(square, jax.devices()[0])
    parts + square  # -> device_to_device argument 3 576
    np.asarray(matrix())  # a view on CPU, of which nobody hears
    np.from_dlpack(matrix())
    np.sum(matrix())
    double(np.ones((8, 8), "float32"))
    jnp.asarray(np.ones(4, "float32"))  # -> host_to_device jnp.asarray 3 48
    jnp.array(np.ones((8, 8)))  # -> host_to_device jnp.array 3 768
    jnp.array(np.ones(8), dtype=jnp.bfloat16)  # -> host_to_device jnp.array 3 48
    jnp.asarray([1.0, 2.0])  # -> host_to_device jnp.asarray 3 24
    jax.tree.map(jnp.asarray, [np.ones(4, "float32")] * 2)  # -> host_to_device jnp.asarray 6 96
    jnp.asarray(matrix())
    matrix().astype("int32")[0] + jnp.ones(8)[0]  # the numbers that JAX makes for itself
    list(matrix())  # its rows stay on the device
    jax.block_until_ready(matrix())
