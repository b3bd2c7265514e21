"""Shardings requested in every way on eight devices, with known results."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxscope

devices = np.array(jax.devices())
line = Mesh(devices, ("data",))
plane = Mesh(devices.reshape(4, 2), ("data", "model"))
constrain = jax.lax.with_sharding_constraint


def by(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


@jax.jit
def even(x):
    return constrain(x * 2, by(line, "data"))


@jax.jit
def odd(x):
    return constrain(x * 2, by(line, "data"))  # 17 rows


@jax.jit
def odd_plane(x):
    return {"h": constrain(x * 2, by(plane, "data", "model")), "x": x}  # (18, 6) on 4x2


@jax.jit
def partly(x):
    return constrain(x, by(plane, "data", P.UNCONSTRAINED))


@jax.jit
def outer(x):
    return odd(x), x.sum()


@functools.partial(
    jax.jit,
    in_shardings=({"up": by(plane, None, "model"), "down": by(plane, "model")}, by(plane, "data")),
    out_shardings=({"up": by(plane, None, "model"), "down": by(plane, "model")}, None),
)
def step(params, batch):
    loss = jnp.mean((batch @ params["up"] @ params["down"]) ** 2)
    return jax.tree.map(lambda p: p * 0.9, params), loss


@jax.jit
def predict(table, x):
    return x @ table


@jax.jit
def padded(x):
    return jnp.sum(constrain(x, by(line, "data")) ** 2)  # 29 rows


@jax.jit
def typed(x):
    return x * 2, jax.sharding.reshard(x, P(None, None))


def main():
    right = even(jnp.ones((16, 4)))
    wrong = odd(jnp.ones((17, 4)))
    half = odd_plane(jnp.ones((18, 6)))
    free = partly(jax.device_put(jnp.ones((8, 4)), by(plane, "data", "model")))
    inner, total = outer(jnp.ones((17, 4)))
    params = {"up": jnp.ones((16, 32)), "down": jnp.ones((32, 16))}
    for _ in range(3):
        params, loss = step(params, jnp.ones((64, 16)))
    step.lower(params, jax.ShapeDtypeStruct((8, 16), "float32")).compile()
    table = jnp.ones((512, 1024))
    for _ in range(2):
        scores = predict(table, jax.device_put(jnp.ones((8, 512)), by(line, "data")))
    padded(jnp.ones((29, 16)))
    explicit = jax.make_mesh((8,), ("e",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(explicit):
        pair = typed(jax.device_put(jnp.ones((16, 2)), P("e")))
    jaxscope.snapshot()
    return right, wrong, half, inner, total, params, loss, scores, pair, free


main()
