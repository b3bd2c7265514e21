"""Programs on eight devices that have every construct that is read from a compiled text.

    python many_modules.py [--target NAME] DIRECTORY [NAME...]

For each program this writes NAME.hlo.txt, its compiled text, and NAME.hlo.pb, XLA's binary form of the same
module, and programs.json with the mesh and the compiler's memory figures. ``cpu`` is the target by default:
eight forced devices. Another target is a machine that need not exist here (``jaxscope compile --help``).
``PROGRAMS`` has the functions; each gets a list of eight devices and returns a ``Case``.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    FORCED = "--xla_force_host_platform_device_count=8"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FORCED}"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

F32, BF16 = jnp.float32, jnp.bfloat16
RING = [(i, (i + 1) % 8) for i in range(8)]
# Options with which the GPU's compiler unrolls loops, peels them and moves their collectives.
PIPELINED = {
    "xla_gpu_enable_while_loop_unrolling": "WHILE_LOOP_UNROLLING_DOUBLE_BUFFER",
    "xla_gpu_collective_permute_decomposer_threshold": 0,
}
if jax.__version_info__ < (0, 11):
    PIPELINED |= {
        "xla_gpu_enable_pipelined_p2p": True,
        "xla_gpu_enable_pipelined_all_gather": True,
        "xla_gpu_enable_pipelined_all_reduce": True,
        "xla_gpu_experimental_pipeline_parallelism_opt_level": "PIPELINE_PARALLELISM_OPT_LEVEL_ENABLE",
    }
PROGRAMS = {}


@dataclass
class Case:
    """A function that can be compiled.

    Attributes:
      function: the function under ``jax.jit``.
      arguments: the shapes of its arguments.
      mesh: the mesh of the program; None: it has none.
      x64: whether 64-bit types are enabled.
      options: options of the compiler, by platform.
    """

    function: object
    arguments: tuple
    mesh: Mesh | None = None
    x64: bool = False
    options: dict = field(default_factory=dict)


def program(build):
    PROGRAMS[build.__name__] = build
    return build


def grid(devices, **axes):
    return Mesh(np.array(devices).reshape(*axes.values()), tuple(axes))


def array(mesh, shape, *spec, dtype=F32, memory=None):
    sharding = NamedSharding(mesh, P(*spec), memory_kind=memory)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def mapped(body, mesh, into, out, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=into, out_specs=out, check_vma=False, **options)


def on_rows(devices, body, shape=(64, 32), dtype=F32):
    """A shard_map of ``body`` over the rows of one array, which is split among all devices."""
    mesh = grid(devices, data=8)
    function = jax.jit(mapped(body, mesh, P("data"), P("data")))
    return Case(function, (array(mesh, shape, "data", dtype=dtype),), mesh)


@program
def exclusive_branches(devices):
    def body(x):
        def summed(x):
            return lax.psum(x, "data")

        def gathered(x):
            return lax.all_gather(x, "data").sum(0)

        return lax.cond(lax.psum(x.sum(), "data") > 0, summed, gathered, x)

    return on_rows(devices, body)


@program
def nested_switches(devices):
    def body(x):
        def inner(x):
            chosen = lax.psum(x[0, 0], "data").astype(int)
            return lax.switch(chosen, [lambda x: lax.psum(x, "data"), lambda x: x * 2, around], x)

        def around(x):
            return lax.ppermute(x, "data", RING)

        def step(i, x):
            return lax.switch(i % 3, [inner, around, lambda x: lax.pmax(x, "data")], x)

        return lax.fori_loop(0, 4, step, x)

    return on_rows(devices, body)


@program
def counted_loops(devices):
    def body(x):
        x = lax.fori_loop(2, 9, lambda i, x: lax.psum(jnp.sin(x) * i, "data"), x)
        down = (jnp.int32(20), x)
        down = lax.while_loop(lambda c: c[0] > 3, lambda c: (c[0] - 4, lax.pmax(c[1] + 1, "data")), down)
        up = lax.while_loop(lambda c: c[1] <= 30, lambda c: (lax.ppermute(c[0] * 2, "data", RING), c[1] + 7), (down[1], jnp.int32(1)))  # fmt: skip
        different = lax.while_loop(lambda c: c[0] != 6, lambda c: (c[0] + 2, jnp.cos(c[1])), (jnp.int32(0), up[0]))  # fmt: skip
        return different[1]

    return on_rows(devices, body)


@program
def unusual_loops(devices):
    """Counters that double, that two conditions end, and a loop that never iterates."""

    def body(x):
        doubled = lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2, lax.psum(jnp.sin(c[1]), "data")), (jnp.int32(1), x))  # fmt: skip
        either = lax.while_loop(lambda c: (c[0] < 9) & (c[0] * c[0] < 30), lambda c: (c[0] + 1, lax.pmax(jnp.cos(c[1]), "data")), (jnp.int32(0), doubled[1]))  # fmt: skip
        return lax.fori_loop(5, 5, lambda i, x: lax.pmin(x * i, "data"), either[1])

    return on_rows(devices, body)


@program
def data_dependent_loop(devices):
    def body(x):
        def step(c):
            total = lax.fori_loop(0, 3, lambda i, x: lax.psum(jnp.tanh(x), "data"), c[1])
            return lax.pmax(total.max(), "data"), total

        return lax.while_loop(lambda c: c[0] > 0.5, step, (jnp.float32(1), x))[1]

    return on_rows(devices, body)


@program
def nested_loops(devices):
    def body(x):
        def inner(i, x):
            return jnp.tanh(lax.psum(x, "data"))

        def middle(i, x):
            return lax.ppermute(lax.fori_loop(0, 5, inner, x), "data", RING)

        def outer(x, _):
            return lax.pmax(lax.fori_loop(0, 3, middle, x), "data"), None

        return lax.scan(outer, x, None, length=7)[0]

    return on_rows(devices, body)


@program
def triangular_loop(devices):
    """The inner loop is longer in each iteration of the outer one."""

    def body(x):
        def outer(i, x):
            inner = lax.fori_loop(0, i, lambda j, x: lax.psum(jnp.sin(x), "data"), x)
            return lax.all_gather(inner, "data", tiled=True)[:8]

        return lax.fori_loop(1, 6, outer, x)

    return on_rows(devices, body)


@program
def every_collective(devices):
    mesh = grid(devices, a=4, b=2)

    def body(x):
        total = jnp.zeros((), F32)
        for axes, size in (("a", 4), ("b", 2), (("a", "b"), 8)):
            total += lax.psum(jnp.sin(x), axes).sum()
            total += lax.pmin(jnp.cos(x), axes).sum()
            total += lax.all_gather(jnp.tan(x), axes, tiled=True)[0].sum()
            total += lax.psum_scatter(jnp.exp(x), axes, tiled=True).sum()
            total += lax.all_to_all(jnp.tanh(x), axes, 0, 1, tiled=True)[0].sum()
            total += lax.ppermute(jnp.sqrt(x), axes, [(i, (i + 3) % size) for i in range(size)]).sum()
        return total[None]

    return Case(
        jax.jit(mapped(body, mesh, P(("a", "b")), P(("a", "b")))),
        (array(mesh, (128, 64), ("a", "b")),),
        mesh,
    )


@program
def reversed_devices(devices):
    return every_collective(devices[::-1])


@program
def transposed_devices(devices):
    """A product on a mesh whose devices are not in the order of their numbers."""
    mesh = Mesh(np.array(devices).reshape(2, 4).T, ("a", "b"))
    function = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(0), out_shardings=NamedSharding(mesh, P()))
    return Case(function, (array(mesh, (64, 128), "a", "b"), array(mesh, (128, 64), "b")), mesh)


@program
def all_to_all_of_pieces(devices):
    def body(x):
        x = lax.all_to_all(x.reshape(8, 4, 16), "data", 0, 0)
        y = lax.all_to_all(x.reshape(8, 64), "data", 1, 0, tiled=True)
        return jnp.sin(y).reshape(8, -1)

    return on_rows(devices, body, (64, 64))


@program
def groups_of_indices(devices):
    def body(x):
        near, far = [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]
        crossed, ends = [[0, 3], [1, 2], [4, 7], [5, 6]], [[0, 1, 4, 5], [2, 3, 6, 7]]
        out = jnp.zeros((), F32)
        for number, groups in enumerate((near, far, crossed, ends)):
            out += lax.all_gather(jnp.sin(x + number), "data", axis_index_groups=groups).max()
            out += lax.psum_scatter(jnp.cos(x + number), "data", axis_index_groups=groups, tiled=True).sum()
        return out[None]

    return on_rows(devices, body)


@program
def permutes_of_some(devices):
    """Permutes in which some devices send nothing, and one that swaps pairs."""

    def body(x):
        x = lax.ppermute(jnp.sin(x), "data", [(0, 1), (1, 2), (2, 3)])
        x = lax.ppermute(jnp.cos(x), "data", [(i, i ^ 1) for i in range(8)])
        return lax.ppermute(jnp.tan(x), "data", [(7, 0)])

    return on_rows(devices, body)


@program
def partly_manual(devices):
    mesh = grid(devices, a=2, b=2, c=2)

    def body(x, w):
        return lax.psum(jnp.tanh(x @ w), "a") @ w.T

    function = jax.shard_map(body, mesh=mesh, in_specs=(P("a"), P()), out_specs=P(), axis_names={"a"})
    return Case(jax.jit(function), (array(mesh, (8, 64), "a", "b"), array(mesh, (64, 64), "b", "c")), mesh)


@program
def nested_maps(devices):
    mesh = grid(devices, a=4, b=2)

    def inner(x):
        return lax.all_gather(lax.psum(x, "b"), "b", tiled=True)

    def outer(x):
        x = lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)])
        return jax.shard_map(
            inner, in_specs=P(None, "b"), out_specs=P(None, None), axis_names={"b"}, check_vma=False
        )(x)

    function = jax.shard_map(
        outer, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}, check_vma=False
    )
    return Case(jax.jit(function), (array(mesh, (16, 32), "a", "b"),), mesh)


@program
def split_axes(devices):
    """A dimension that is split among eight devices becomes two: the partitioner uses parts of the axis."""
    mesh = grid(devices, data=8)

    def function(x, w):
        x = jnp.sin(x).reshape(4, 16, 32)
        return jnp.einsum("abc,cd->bd", x, w) + x.max(0) @ w

    return Case(jax.jit(function), (array(mesh, (64, 32), "data"), array(mesh, (32, 8))), mesh)


@program
def fully_sharded_layers(devices):
    mesh = grid(devices, data=8)

    def loss(weights, x):
        @partial(jax.checkpoint, policy=jax.checkpoint_policies.nothing_saveable)
        def layer(x, w):
            whole = lax.with_sharding_constraint(w["up"], NamedSharding(mesh, P()))
            return x + jnp.tanh(x @ whole) @ w["down"], None

        return jnp.mean(lax.scan(layer, x, weights)[0] ** 2)

    def step(weights, x):
        value, grads = jax.value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads), value

    weights = {name: array(mesh, (5, 64, 64), None, "data") for name in ("up", "down")}
    return Case(jax.jit(step, donate_argnums=0), (weights, array(mesh, (32, 64), "data")), mesh)


@program
def tensor_parallel(devices):
    mesh = grid(devices, data=2, model=4)

    def step(blocks, x):
        def block(x, w):
            up, down = w
            return x + jax.nn.gelu(x @ up) @ down, None

        return lax.scan(block, x, blocks)[0]

    up, down = array(mesh, (6, 64, 128), None, None, "model"), array(mesh, (6, 128, 64), None, "model")
    loss = jax.grad(lambda blocks, x: step(blocks, x).sum())
    return Case(jax.jit(loss), ((up, down), array(mesh, (32, 64), "data")), mesh)


@program
def data_parallel(devices):
    mesh = grid(devices, data=8)

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w["w"] + w["b"])
        return jnp.mean(x**2)

    weights = [{"w": array(mesh, (32, 32)), "b": array(mesh, (32,))}] * 4
    same = jax.tree.map(lambda w: w.sharding, weights)
    function = jax.jit(jax.grad(loss), out_shardings=same)
    return Case(function, (weights, array(mesh, (128, 32), "data")), mesh)


@program
def experts(devices):
    mesh = grid(devices, data=2, expert=4)

    def layer(w, x):
        sent = lax.all_to_all(x, "expert", 0, 0, tiled=True)
        done = jnp.einsum("ecd,df->ecf", sent, w[0])
        back = lax.all_to_all(jnp.tanh(done), "expert", 0, 0, tiled=True)
        return lax.pmean(back.astype(F32).sum(), ("data", "expert"))

    function = mapped(layer, mesh, (P("expert"), P(("data", "expert"))), P())
    shapes = (
        array(mesh, (4, 16, 16), "expert", dtype=BF16),
        array(mesh, (32, 8, 16), ("data", "expert"), dtype=BF16),
    )
    return Case(jax.jit(jax.grad(function)), shapes, mesh)


@program
def pipeline(devices):
    mesh = grid(devices, stage=4, data=2)

    def run(w, x):
        def tick(carry, _):
            carry = jnp.tanh(carry @ w[0])
            return lax.ppermute(carry, "stage", [(i, (i + 1) % 4) for i in range(4)]), carry[0]

        return lax.scan(tick, x, None, length=9)

    function = mapped(run, mesh, (P("stage"), P("data")), (P("data"), P()))
    return Case(
        jax.jit(function, donate_argnums=1),
        (array(mesh, (4, 32, 32), "stage"), array(mesh, (16, 32), "data")),
        mesh,
    )


@program
def ragged_exchange(devices):
    def body(x):
        out = jnp.zeros_like(x)
        ones = jnp.ones(8, jnp.int32)
        places = jnp.arange(8, dtype=jnp.int32)
        there = jnp.full(8, lax.axis_index("data"), jnp.int32)
        return lax.ragged_all_to_all(x, out, places, ones, there, ones, axis_name="data")

    return on_rows(devices, body)


@program
def windowed_products(devices):
    """Layers whose weights are split along the dimension that is summed over: the TPU's partitioner turns the
    gather of a weight and its product into a loop of permutes and smaller products."""
    mesh = grid(devices, data=8)

    def loss(weights, x):
        @jax.checkpoint
        def layer(x, w):
            return x + jnp.tanh(x @ w["up"]) @ w["down"], None

        return jnp.mean(lax.scan(layer, x, weights)[0].astype(F32) ** 2)

    def step(weights, x):
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x))

    weights = {
        "up": array(mesh, (2, 1024, 4096), None, "data", dtype=BF16),
        "down": array(mesh, (2, 4096, 1024), None, "data", dtype=BF16),
    }
    same = jax.tree.map(lambda w: w.sharding, weights)
    x = array(mesh, (16, 512, 1024), "data", dtype=BF16)
    return Case(jax.jit(step, donate_argnums=0, out_shardings=same), (weights, x), mesh)


@program
def offloaded(devices):
    """A state in the memory of the host, which is copied to the device and back."""
    mesh = grid(devices, data=8)
    near, far = (NamedSharding(mesh, P("data"), memory_kind=kind) for kind in ("device", "pinned_host"))

    def step(state, x):
        state = jax.device_put(state, near) * 0.9 + x
        return jax.device_put(state, far), jnp.sum(state)

    shapes = array(mesh, (1024, 256), "data", memory="pinned_host"), array(mesh, (1024, 256), "data")
    return Case(jax.jit(step, donate_argnums=0), shapes, mesh)


@program
def eight_bit_products(devices):
    mesh = grid(devices, data=2, model=4)

    def function(x, w, scale):
        product = lax.dot(x, w, preferred_element_type=F32) * scale
        return product.astype(jnp.float8_e5m2), jnp.max(jnp.abs(product))

    eight = jnp.float8_e4m3fn
    shapes = (
        array(mesh, (64, 128), "data", "model", dtype=eight),
        array(mesh, (128, 64), "model", dtype=eight),
    )
    return Case(jax.jit(function), (*shapes, array(mesh, ())), mesh)


@program
def convolutions(devices):
    """Convolutions of images whose rows are split among devices, which exchange their borders."""
    mesh = grid(devices, data=2, rows=4)

    def loss(filters, images):
        for w in filters:
            images = jax.nn.relu(
                lax.conv_general_dilated(
                    images, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
            )
        return jnp.mean(images**2)

    filters = [array(mesh, (3, 3, 8, 8)), array(mesh, (5, 5, 8, 8))]
    images = array(mesh, (8, 32, 16, 8), "data", "rows")
    return Case(jax.jit(jax.grad(loss)), (filters, images), mesh)


@program
def donated(devices):
    """All arguments are donated; one has no output of its shape, and one output is a part of a tree."""
    mesh = grid(devices, data=8)

    def step(state, unused, count):
        new = {"w": state["w"] * 2, "b": state["b"] + unused.sum()}
        return count + 1, {"deeper": [new, state["w"][0] + 1]}

    state = {"w": array(mesh, (64, 64), "data"), "b": array(mesh, (32,))}
    arguments = state, array(mesh, (7, 5)), array(mesh, (), dtype=jnp.int32)
    return Case(jax.jit(step, donate_argnums=(0, 1, 2)), arguments, mesh)


@program
def partly_donated(devices):
    mesh = grid(devices, data=4, model=2)

    def step(a, b, c, d):
        return (a + b).astype(a.dtype), b @ c, d[::-1]

    arguments = (
        array(mesh, (64, 32), "data"),
        array(mesh, (64, 32), "data", "model"),
        array(mesh, (32, 32), "model"),
        array(mesh, (13, 3), dtype=BF16),
    )
    return Case(jax.jit(step, donate_argnums=(1, 3), keep_unused=True), arguments, mesh)


@program
def foreign_calls(devices):
    """Custom calls: a factorization of a library, and a callback to Python."""
    mesh = grid(devices, data=8)

    def function(x, seen):
        q, r = jnp.linalg.qr(x)
        lower = jnp.linalg.cholesky(r.T @ r + jnp.eye(12))
        return q, jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4,), F32), seen), lower

    def plain(x, seen):
        return jnp.linalg.qr(x)[1], jnp.linalg.cholesky(x.T @ x + jnp.eye(12)), seen

    whole = array(mesh, (24, 12)), array(mesh, (4,))
    return Case(jax.jit(function if devices[0].platform == "cpu" else plain), whole, mesh)


@program
def kernels(devices):
    """A Pallas kernel in a shard_map, in a loop with a collective."""
    from jax.experimental import pallas as pl

    def kernel(x, y):
        y[...] = x[...] * 2 + 1

    def body(x):
        call = pl.pallas_call(
            kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=devices[0].platform == "cpu"
        )
        return lax.fori_loop(0, 3, lambda i, x: lax.psum(call(x), "data"), x)

    return on_rows(devices, body, (64, 128))


@program
def constraints(devices):
    mesh = grid(devices, a=4, b=2)

    def function(x):
        for spec in (P("a", "b"), P("b", "a"), P(None, ("a", "b")), P(("b", "a")), P("a"), P(None, "b"), P()):
            x = lax.with_sharding_constraint(jnp.sin(x) + 1, NamedSharding(mesh, spec))
        return x

    return Case(jax.jit(function), (array(mesh, (64, 64)),), mesh)


@program
def trees(devices):
    """Collectives of several arrays of different types and sizes."""

    def body(x):
        tree = {"a": x, "b": x[:2].astype(BF16), "c": (x[0, 0].astype(jnp.int32), x[:, :3])}
        summed = lax.psum(tree, "data")
        gathered = lax.all_gather(tree, "data")
        scattered = lax.psum_scatter([x * 2, x.T * 3], "data", tiled=True, scatter_dimension=0)
        return jax.tree.map(lambda leaf: leaf[None], (summed, gathered, scattered))

    return on_rows(devices, body)


@program
def narrow_types(devices):
    mesh = grid(devices, data=8)

    def function(x, y, flags):
        added = x.astype(jnp.int8) + y.astype(jnp.int8)
        chosen = jnp.where(flags[:, None], added, 1)
        return chosen.astype(jnp.int4), added.astype(jnp.uint4), jnp.any(chosen > 2, axis=0), flags.sum()

    shapes = (
        array(mesh, (64, 24), "data", dtype=jnp.uint4),
        array(mesh, (64, 24), "data", dtype=jnp.int4),
        array(mesh, (64,), "data", dtype=jnp.bool_),
    )
    return Case(jax.jit(function, out_shardings=NamedSharding(mesh, P())), shapes, mesh)


@program
def sorted_rows(devices):
    mesh = grid(devices, data=8)

    def function(x, keys):
        best, places = lax.top_k(x, 5)
        order = jnp.argsort(keys)
        return best, places, x[order], lax.sort((keys, x[:, 0]), num_keys=1), jnp.cumsum(x, axis=0)

    shapes = array(mesh, (64, 40), "data"), array(mesh, (64,), "data", dtype=jnp.int32)
    return Case(jax.jit(function), shapes, mesh)


@program
def random_numbers(devices):
    mesh = grid(devices, data=8)
    split = NamedSharding(mesh, P("data"))

    def function(seed, x):
        key = jax.random.key(seed)
        first, second = jax.random.split(key)
        noise = jax.random.normal(first, x.shape)
        fast = jax.random.bits(jax.random.key(seed, impl="rbg"), (64, 16))
        return lax.with_sharding_constraint(x + noise, split), jax.random.permutation(second, 40), fast

    return Case(jax.jit(function), (array(mesh, (), dtype=jnp.uint32), array(mesh, (64, 16), "data")), mesh)


@program
def wide_types(devices):
    mesh = grid(devices, data=8)

    def function(x, n, z):
        def more(c):
            return c[0] < 12

        def step(c):
            return c[0] + 5, jnp.sin(c[1]) + c[1].sum()

        return lax.while_loop(more, step, (jnp.int64(-3), x))[1], n.sum() * 2**40, jnp.fft.fft(z)

    shapes = (
        array(mesh, (64, 8), "data", dtype=jnp.float64),
        array(mesh, (64,), "data", dtype=jnp.int64),
        array(mesh, (8, 16), "data", dtype=jnp.complex64),
    )
    return Case(jax.jit(function), shapes, mesh, x64=True)


@program
def moving_slices(devices):
    mesh = grid(devices, data=8)

    def function(x, start, cache):
        rows = lax.dynamic_slice(x, (start, 0), (5, 16))
        cache = lax.dynamic_update_slice(cache, rows, (start * 2, 0))

        def step(carry, i):
            return lax.dynamic_update_index_in_dim(carry, carry[i] + 1, i + 1, 0), carry[i].sum()

        return lax.scan(step, cache, jnp.arange(11))

    shapes = (
        array(mesh, (64, 16), "data"),
        array(mesh, (), dtype=jnp.int32),
        array(mesh, (128, 16), "data"),
    )
    return Case(jax.jit(function, donate_argnums=2), shapes, mesh)


@program
def embeddings(devices):
    mesh = grid(devices, data=2, model=4)

    def loss(table, tokens):
        found = table[tokens]
        logits = found @ table.T
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1))

    shapes = array(mesh, (128, 32), "model"), array(mesh, (8, 16), "data", dtype=jnp.int32)
    return Case(jax.jit(jax.value_and_grad(loss)), shapes, mesh)


@program
def transformer(devices, width=64, batch=8, length=32):
    mesh = grid(devices, data=4, model=2)
    head = width // 4

    def layer(x, p):
        q, k, v = jnp.einsum("btd,dchk->cbthk", x, p["qkv"])
        scores = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k) / 8, -1)
        x = x + jnp.einsum("bhts,bshk,hkd->btd", scores, v, p["o"])
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"]

    def loss(params, x):
        return jnp.mean(lax.scan(lambda x, p: (jax.checkpoint(layer)(x, p), None), x, params)[0] ** 2)

    def step(params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x))

    params = {
        "qkv": array(mesh, (3, width, 3, 4, head), None, "data", None, "model", dtype=BF16),
        "o": array(mesh, (3, 4, head, width), None, "model", None, "data", dtype=BF16),
        "up": array(mesh, (3, width, 2 * width), None, "data", "model", dtype=BF16),
        "down": array(mesh, (3, 2 * width, width), None, "model", "data", dtype=BF16),
    }
    same = jax.tree.map(lambda p: p.sharding, params)
    function = jax.jit(step, donate_argnums=0, out_shardings=same)
    return Case(function, (params, array(mesh, (batch, length, width), "data", dtype=BF16)), mesh)


@program
def large_transformer(devices):
    """So large that the TPU's compiler computes during transfers."""
    return transformer(devices, width=1024, batch=16, length=512)


@program
def one_device(devices):
    """No mesh: scans forward and backward, and results that are arguments or constants."""

    def function(x, w, unchanged):
        def cell(h, row):
            h = jnp.tanh(h @ w + row)
            return h, h.astype(BF16)

        last, states = lax.scan(cell, jnp.zeros(24), x)
        back = lax.scan(lambda c, s: (c + s.sum(), c), 0.0, states, reverse=True)[1]
        return last, back, unchanged, jnp.arange(6)

    one = jax.sharding.SingleDeviceSharding(devices[0])
    shapes = ((17, 24), (24, 24), (3, 5))
    arguments = tuple(jax.ShapeDtypeStruct(shape, F32, sharding=one) for shape in shapes)
    return Case(jax.jit(function), arguments)


@program
def one_array(devices):
    """One array in, one out, which is neither a tuple nor split."""
    one = jax.sharding.SingleDeviceSharding(devices[0])
    shape = jax.ShapeDtypeStruct((33, 65), F32, sharding=one)
    return Case(jax.jit(lambda x: x * 2 + jnp.roll(x, 1), donate_argnums=0), (shape,))


@program
def counters(devices):
    """Counters of several types and directions; one goes around the end of its type."""

    def body(x):
        def loop(start, more, change, x):
            return lax.while_loop(lambda c: more(c[0]), lambda c: (change(c[0]), lax.psum(c[1] * 2, "data")), (start, x))[1]  # fmt: skip

        x = loop(jnp.uint32(9), lambda i: i > 0, lambda i: i - 1, x)
        x = loop(jnp.uint8(5), lambda i: i < 8, lambda i: i - 1, x)
        x = loop(jnp.int16(-7), lambda i: i < 7, lambda i: i + 3, x)
        x = loop(jnp.int8(100), lambda i: i >= -100, lambda i: i - 9, x)
        x = loop(jnp.int32(3), lambda i: i * 2 < 40, lambda i: i + 5, x)
        x = loop(jnp.int32(3), lambda i: i <= 49, lambda i: (i + 5) - 1, x)
        return loop(jnp.float32(0), lambda i: i < 2.5, lambda i: i + 1, x)

    return on_rows(devices, body)


@program
def converted_counters(devices):
    """Counters that are converted, chosen, exchanged or limited before they are compared."""

    def body(x):
        def loop(start, more, change, x):
            return lax.while_loop(lambda c: more(*c[:2]), lambda c: (*change(*c[:2]), lax.psum(c[2] * 2, "data")), (*start, x))[2]  # fmt: skip

        zero = jnp.int32(0)
        x = loop((zero - 5, zero), lambda i, j: i.astype(jnp.uint8) < 200, lambda i, j: (i + 1, j), x)
        x = loop((zero + 250, zero), lambda i, j: i.astype(jnp.uint8) > 100, lambda i, j: (i + 1, j), x)
        x = loop((zero, zero), lambda i, j: i < jnp.where(j > 3, 9, 8), lambda i, j: (i + 1, j + 1), x)
        x = loop((zero, zero + 1), lambda i, j: i < 10, lambda i, j: (j, i + 2), x)
        x = loop((zero, zero), lambda i, j: i < 10, lambda i, j: (jnp.minimum(i + 3, 10), j), x)
        x = loop((zero, zero + 4), lambda i, j: i < 20, lambda i, j: (i + j, j), x)
        x = loop((zero, zero), lambda i, j: i < 9, lambda i, j: (lax.cond(i > 4, lambda: i + 1, lambda: i + 2), j), x)  # fmt: skip
        return loop((zero, zero), lambda i, j: (i < 9) & (j < 4), lambda i, j: (i + 1, j + 1), x)

    return on_rows(devices, body)


@program
def carried_bounds(devices):
    """Bounds that are carried along: constants, arguments, and one that changes."""
    mesh = grid(devices, data=8)

    def body(x, n):
        def until(bound, change, x):
            return lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, change(c[1]), lax.pmax(c[2] + 1, "data")), (jnp.int32(0), bound, x))[2]  # fmt: skip

        x = until(jnp.int32(6), lambda bound: bound, x)
        x = until(jnp.int32(12), lambda bound: bound - 1, x)
        x = until(n, lambda bound: bound, x)
        x = lax.fori_loop(0, 4, lambda i, x: until(jnp.int32(3), lambda bound: bound, x), x)
        x = lax.fori_loop(0, 4, lambda i, x: until(i + 2, lambda bound: bound, x), x)
        return lax.scan(lambda x, _: (lax.psum(jnp.sin(x), "data"), None), x, None, length=10, unroll=4)[0]

    function = jax.jit(mapped(body, mesh, (P("data"), P()), P("data")))
    return Case(function, (array(mesh, (64, 32), "data"), array(mesh, (), dtype=jnp.int32)), mesh)


@program
def conditions_that_communicate(devices):
    def body(x):
        def more(c):
            return (lax.pmax(c[1].max(), "data") > 0.1) & (c[0] < 7)

        def step(c):
            one = lax.cond(c[0] % 2 == 0, lambda x: lax.psum(x, "data"), lambda x: x + 1, c[1])
            return c[0] + 1, lax.fori_loop(0, 2, lambda i, x: lax.ppermute(jnp.sin(x), "data", RING), one)

        return lax.while_loop(more, step, (jnp.int32(0), x))[1]

    return on_rows(devices, body)


@program
def eigenvalues(devices):
    """Algorithms of linear algebra, which on TPU are loops and conditionals."""
    mesh = grid(devices, data=8)

    def function(x):
        symmetric = x + x.swapaxes(1, 2)
        values, vectors = jnp.linalg.eigh(symmetric)
        solved = jnp.linalg.solve(symmetric, vectors)
        return values, solved, jnp.linalg.svd(x[0], compute_uv=False)

    return Case(jax.jit(function), (array(mesh, (8, 16, 16), "data"),), mesh)


@program
def host_work(devices):
    """A part of the work is done on the host, in a loop."""
    from jax.experimental.compute_on import compute_on

    if jax.__version_info__ >= (0, 11):
        space = jax.typeof(jnp.zeros(())).memory_space
        on_host = partial(compute_on, compute_type="device_host", out_memory_spaces=space)
    else:
        on_host = compute_on("device_host")
    mesh = grid(devices, data=8)

    def function(x, state):
        update = on_host(jax.jit(lambda state: state * 0.9 + 1))

        def step(c, _):
            return (jnp.tanh(c[0] @ c[0].T)[:, :64], update(c[1])), None

        return lax.scan(step, (x, state), None, length=3)[0]

    return Case(jax.jit(function), (array(mesh, (64, 64), "data"), array(mesh, (64, 8), "data")), mesh)


@program
def mapped_replicas(devices):
    def step(w, x):
        grads = jax.grad(lambda w: jnp.sum((x @ w) ** 2))(w)
        return w - 0.1 * lax.psum(grads, "i"), lax.all_gather(x[0], "i")

    shapes = (jax.ShapeDtypeStruct(shape, F32) for shape in ((8, 32, 32), (8, 4, 32)))
    return Case(jax.pmap(step, axis_name="i", devices=list(devices)), tuple(shapes))


@program
def unusual_shapes(devices):
    """Results without elements, scalars, and 70 results of one function."""
    mesh = grid(devices, data=8)

    def function(x, z, empty):
        many = [x[0, 0] + i for i in range(70)]
        return many, z * 2, jnp.concatenate([empty, empty]), x[:0], (), {"a": (x.T, None)}

    shapes = (
        array(mesh, (64, 3), "data"),
        array(mesh, (8, 2), "data", dtype=jnp.complex64),
        array(mesh, (0, 4)),
    )
    return Case(jax.jit(function), shapes, mesh)


@program
def ordered_effects(devices):
    """Callbacks in an order, in a loop, whose token is an argument and a result."""

    def function(x):
        def step(i, x):
            if devices[0].platform == "cpu":
                jax.debug.print("{}", x[0, 0], ordered=True)
            return x * 2

        return lax.fori_loop(0, 4, step, x)

    one = jax.sharding.SingleDeviceSharding(devices[0])
    return Case(jax.jit(function), (jax.ShapeDtypeStruct((4, 4), F32, sharding=one),))


@program
def overlapped(devices):
    """Loops that the GPU's compiler pipelines, with permutes that it turns into sends and receives."""
    mesh = grid(devices, data=8)

    def run(w, x):
        def tick(carry, w):
            whole = lax.all_gather(w, "data", tiled=True)
            carry = jnp.tanh(carry @ whole)
            return lax.ppermute(carry, "data", RING[:-1]) + carry, lax.psum(carry.sum(), "data")

        return lax.scan(tick, x, w)

    function = mapped(run, mesh, (P(None, "data"), P("data")), (P("data"), P()))
    shapes = array(mesh, (9, 256, 256), None, "data"), array(mesh, (512, 256), "data")
    return Case(jax.jit(function), shapes, mesh, options={"gpu": PIPELINED})


@program
def overlapped_loops(devices):
    case = nested_loops(devices)
    case.options = {"gpu": PIPELINED}
    return case


def devices_of(target):
    """Return eight devices: the forced ones of the CPU, or those of a target that need not exist here."""
    if target == "cpu":
        return jax.devices()
    from jaxscope.analysis import machines
    from jaxscope.targets import client

    return client.devices_of(machines.parse(target))


def facts(compiled, mesh):
    """Return what the compiler says about the memory of a program, in bytes for one device, and its mesh."""
    memory = compiled.memory_analysis()
    return {
        "mesh": None if mesh is None else [[axis, size] for axis, size in mesh.shape.items()],
        **{
            name: getattr(memory, f"{name}_size_in_bytes")
            for name in ("argument", "output", "alias", "temp", "host_argument", "host_output", "host_alias")
        },
    }


def compile_one(name, devices):
    """Compile the program ``name``. Return (compiled text, binary form of the module, facts)."""
    case = PROGRAMS[name](devices)
    with jax.enable_x64(case.x64):
        if case.x64:  # the shapes were made without 64-bit types
            case = PROGRAMS[name](devices)
        lowered = case.function.lower(*case.arguments)
    compiled = lowered.compile(compiler_options=case.options.get(devices[0].client.platform))
    binary = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    return compiled.as_text(), binary, facts(compiled, case.mesh)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--target", default="cpu")
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    devices = devices_of(given.target)
    for name in given.names or PROGRAMS:
        started = time.perf_counter()
        (given.folder / "now").write_text(name)
        try:
            text, binary, found = compile_one(name, devices)
        except Exception as error:  # not every compiler has every operation
            found = {"error": f"{type(error).__name__}: {error}"[:2000]}
        else:
            (given.folder / f"{name}.hlo.txt").write_text(text)
            (given.folder / f"{name}.hlo.pb").write_bytes(binary)
        found["seconds"] = round(time.perf_counter() - started, 2)
        (given.folder / f"{name}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
