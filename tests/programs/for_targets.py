"""Sharded training steps, run on simulated CPU devices and compiled for targets.

``build(devices)`` gives the jitted functions with the shapes of their arguments on any devices; run as a script
it calls them on those JAX has.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

D, LAYERS = 256, 4


def build(devices):
    mesh = Mesh(np.array(devices).reshape(-1, 4), ("data", "model"))

    def on(*spec):
        return NamedSharding(mesh, P(*spec))

    def block(x, w):
        h = jax.nn.gelu(x @ w["up"])
        h = jax.lax.with_sharding_constraint(h, on("data", "model"))
        return x + h @ w["down"], None

    def loss(params, x):
        x, _ = jax.lax.scan(block, x, params["layers"])
        return jnp.mean((x @ params["out"]).astype(jnp.float32) ** 2)

    def train_step(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    def reduce_rows(x):
        return jax.lax.psum(x, "data")

    def experts(w, x):
        """Tokens to their experts and back, twice: all-to-all over one axis, gradients over the other."""

        def one(x, w):
            sent = jax.lax.all_to_all(x.reshape(4, -1, D), "model", split_axis=0, concat_axis=1, tiled=True)
            back = jax.nn.gelu(sent.reshape(-1, D) @ w[0]).reshape(1, -1, D)
            return x + jax.lax.all_to_all(back, "model", split_axis=1, concat_axis=0, tiled=True).reshape(
                x.shape
            ), None

        x, _ = jax.lax.scan(one, x, w)
        return jax.lax.pmean(x.astype(jnp.float32).sum(), ("data", "model"))

    def pipeline(w, x):
        """Each device of an axis is a stage: what it made goes to the next one, LAYERS times."""

        def stage(_, x):
            x = jnp.tanh(x @ w[0])
            return jax.lax.ppermute(x, "model", [(i, (i + 1) % 4) for i in range(4)])

        return jax.lax.fori_loop(0, LAYERS, stage, x)

    def shape(dims, dtype, *spec):
        return jax.ShapeDtypeStruct(dims, dtype, sharding=on(*spec))

    params = {
        "layers": {
            "up": shape((LAYERS, D, 4 * D), jnp.bfloat16, None, None, "model"),
            "down": shape((LAYERS, 4 * D, D), jnp.bfloat16, None, "model", None),
        },
        "out": shape((D, D), jnp.bfloat16, "model", None),
    }
    x = shape((4 * len(devices), D), jnp.bfloat16, "data", None)
    rows = shape((len(devices) // 4, 128), jnp.float32, "data", None)
    mapped = jax.shard_map(reduce_rows, mesh=mesh, in_specs=P("data", None), out_specs=P(None, None))
    routed = jax.shard_map(
        experts, mesh=mesh, in_specs=(P(None, "model"), P(("data", "model"))), out_specs=P()
    )
    piped = jax.shard_map(pipeline, mesh=mesh, in_specs=(P("model"), P("data", None)), out_specs=P("data", "model"), check_vma=False)  # fmt: skip
    tokens = shape((16 * len(devices), D), jnp.bfloat16, ("data", "model"), None)
    stages = shape((4, D, D), jnp.bfloat16, "model", None, None)
    return {
        "train_step": (jax.jit(train_step, donate_argnums=0), (params, x)),
        "reduce_rows": (jax.jit(mapped), (rows,)),
        "experts": (
            jax.jit(jax.grad(routed)),
            (shape((LAYERS, 4, D, D), jnp.bfloat16, None, "model"), tokens),
        ),
        "pipeline": (jax.jit(piped, donate_argnums=1), (stages, x)),
        "alone": (jax.jit(alone), (jax.ShapeDtypeStruct((512, 512), jnp.float32),)),
    }


def alone(x):
    return jnp.tanh(x @ x.T) * 2


def step_and_shapes():
    """For ``jaxscope compile``: the step on all devices there are."""
    return build(jax.devices())["train_step"][1]


def train_step(params, x):
    return build(jax.devices())["train_step"][0](params, x)


def main():
    for name, (function, shapes) in build(jax.devices()).items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        arguments = jax.tree.map(lambda s: jax.device_put(np.zeros(s.shape, s.dtype), s.sharding), shapes)
        jax.block_until_ready(function(*arguments))


if __name__ == "__main__":
    main()
