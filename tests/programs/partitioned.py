"""Programs on eight devices whose collectives follow from how they are written.

    python partitioned.py DIRECTORY     writes NAME.hlo.txt for each, and programs.json

Every program is a function of its arguments alone; what it must contain stands in
tests/analysis/hlo/test_partitioned.py. ``# blame: WORD`` marks the line that a collective is to be traced
back to.
"""

import json
import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = np.array(jax.devices())
F32 = jnp.float32
PROGRAMS = {}


def program(mesh=None):
    def register(build):
        PROGRAMS[build.__name__] = (build, mesh)
        return build

    return register


def grid(**axes):
    return Mesh(DEVICES.reshape(*axes.values()), tuple(axes))


def array(mesh, shape, *spec, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


D8, AB = grid(data=8), grid(a=4, b=2)
DM = grid(data=2, model=4)


@program(D8)
def data_parallel():
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)  # blame: dot
        return jnp.sum(x * x)

    weights = [array(D8, (64, 64))] * 3
    same = [NamedSharding(D8, P())] * 3
    return jax.jit(jax.grad(loss), out_shardings=same).lower(weights, array(D8, (256, 64), "data"))


@program(DM)
def tensor_parallel():
    def forward(blocks, x):
        for up, down in blocks:
            x = x + jnp.tanh(x @ up) @ down  # blame: down
        return x

    block = (array(DM, (64, 128), None, "model"), array(DM, (128, 64), "model"))
    out = NamedSharding(DM, P("data"))
    return jax.jit(forward, out_shardings=out).lower([block] * 4, array(DM, (32, 64), "data"))


@program(DM)
def tensor_parallel_scan():
    def forward(blocks, x):
        def block(x, weights):
            up, down = weights
            return x + jnp.tanh(x @ up) @ down, None  # blame: down

        return lax.scan(block, x, blocks)[0]

    blocks = (array(DM, (6, 64, 128), None, None, "model"), array(DM, (6, 128, 64), None, "model"))
    out = NamedSharding(DM, P("data"))
    return jax.jit(forward, out_shardings=out).lower(blocks, array(DM, (32, 64), "data"))


@program(D8)
def fully_sharded():
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ lax.all_gather(w, "data", tiled=True))  # blame: gather
        return jnp.sum(x * x)

    step = jax.shard_map(
        jax.grad(loss), mesh=D8, in_specs=(P("data"), P("data")), out_specs=P("data"), check_vma=False
    )
    weights = [array(D8, (64, 64), "data")] * 3
    return jax.jit(step).lower(weights, array(D8, (16, 64), "data"))


@program(grid(stage=4, data=2))
def pipeline():
    mesh = grid(stage=4, data=2)
    steps = 9

    def run(w, x):
        def tick(carry, _):
            carry = jnp.tanh(carry @ w[0])
            return lax.ppermute(carry, "stage", [(i, (i + 1) % 4) for i in range(4)]), None  # blame: ppermute

        return lax.scan(tick, x, None, length=steps)[0]

    mapped = jax.shard_map(
        run, mesh=mesh, in_specs=(P("stage"), P("data")), out_specs=P("data"), check_vma=False
    )
    return jax.jit(mapped).lower(array(mesh, (4, 32, 32), "stage"), array(mesh, (16, 32), "data"))


@program(grid(data=2, expert=4))
def expert_parallel():
    mesh = grid(data=2, expert=4)

    def layer(w, x):
        sent = lax.all_to_all(x, "expert", 0, 0, tiled=True)  # blame: dispatch
        done = jnp.einsum("ecd,df->ecf", sent, w[0])
        return lax.all_to_all(jnp.tanh(done), "expert", 0, 0, tiled=True)  # blame: combine

    mapped = jax.shard_map(
        layer, mesh=mesh, in_specs=(P("expert"), P(("data", "expert"))), out_specs=P(("data", "expert"))
    )
    return jax.jit(mapped).lower(
        array(mesh, (4, 16, 16), "expert"), array(mesh, (32, 8, 16), ("data", "expert"))
    )


def every_collective(mesh):
    def body(x):
        total = jnp.zeros((), F32)
        for axes in ("a", "b", ("a", "b")):
            size = np.prod([mesh.shape[n] for n in ((axes,) if isinstance(axes, str) else axes)])
            total += lax.psum(jnp.sin(x), axes).sum()  # blame: psum
            total += lax.pmax(jnp.cos(x), axes).sum()  # blame: pmax
            total += lax.all_gather(jnp.tan(x), axes, tiled=True).sum()  # blame: all_gather
            total += lax.psum_scatter(jnp.exp(x), axes, tiled=True).sum()  # blame: psum_scatter
            total += lax.all_to_all(jnp.tanh(x), axes, 0, 1, tiled=True).sum()  # blame: all_to_all
            ring = [(i, (i + 1) % size) for i in range(size)]
            total += lax.ppermute(jnp.sqrt(x), axes, ring).sum()  # blame: ppermute
        return total[None]

    mapped = jax.shard_map(body, mesh=mesh, in_specs=P(("a", "b")), out_specs=P(("a", "b")), check_vma=False)
    return jax.jit(mapped).lower(array(mesh, (64 * 8, 64), ("a", "b")))


@program(AB)
def every_collective_in_order():
    return every_collective(AB)


REVERSED = Mesh(DEVICES[::-1].reshape(4, 2), ("a", "b"))
TRANSPOSED = Mesh(DEVICES.reshape(2, 4).T, ("a", "b"))


@program(REVERSED)
def every_collective_reversed():
    return every_collective(REVERSED)


@program(TRANSPOSED)
def every_collective_transposed():
    return every_collective(TRANSPOSED)


@program(D8)
def sub_axes():
    def body(x):
        near = [[0, 1], [2, 3], [4, 5], [6, 7]]
        far = [[0, 4], [1, 5], [2, 6], [3, 7]]
        middle = [[0, 2], [1, 3], [4, 6], [5, 7]]
        ends = [[0, 1, 4, 5], [2, 3, 6, 7]]
        out = jnp.zeros((), F32)
        out += lax.all_gather(jnp.sin(x), "data", axis_index_groups=near).sum()  # blame: near
        out += lax.all_gather(jnp.cos(x), "data", axis_index_groups=far).sum()  # blame: far
        out += lax.all_gather(jnp.tan(x), "data", axis_index_groups=middle).sum()  # blame: middle
        out += lax.all_gather(jnp.exp(x), "data", axis_index_groups=ends).sum()  # blame: ends
        return out[None]

    mapped = jax.shard_map(body, mesh=D8, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    return jax.jit(mapped).lower(array(D8, (64, 32), "data"))


@program()
def pmapped():
    def step(w, x):
        grads = jax.grad(lambda w: jnp.sum((x @ w) ** 2))(w)
        return w - 0.1 * lax.psum(grads, "i")  # blame: psum

    w, x = (jax.ShapeDtypeStruct(s, F32) for s in ((8, 32, 32), (8, 4, 32)))
    return jax.pmap(step, axis_name="i").lower(w, x)


@program(D8)
def nested_loops():
    def body(x):
        def inner(i, x):
            return jnp.tanh(lax.psum(x, "data"))  # blame: inner

        def outer(x, _):
            x = lax.fori_loop(0, 5, inner, x)
            return x + lax.pmax(x, "data"), None  # blame: outer

        return lax.scan(outer, x, None, length=7)[0]

    mapped = jax.shard_map(body, mesh=D8, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    return jax.jit(mapped).lower(array(D8, (64, 32), "data"))


@program(D8)
def loop_until():
    def body(x):
        def more(x):
            return lax.psum(x.sum(), "data") > 1.0  # blame: condition

        return lax.while_loop(more, lambda x: x * 0.5 + 0.0 * lax.pmax(x, "data"), x)  # blame: body

    mapped = jax.shard_map(body, mesh=D8, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    return jax.jit(mapped).lower(array(D8, (64, 32), "data"))


@program(AB)
def partly_manual():
    def body(x, w):
        return lax.psum(x, "a") @ w  # blame: psum, dot

    mapped = jax.shard_map(body, mesh=AB, in_specs=(P("a"), P()), out_specs=P(), axis_names={"a"})
    return jax.jit(mapped).lower(array(AB, (8, 64), "a", "b"), array(AB, (64, 64), "b"))


@program(D8)
def donating():
    def step(state, batch, unused):
        return {"w": state["w"] * 2, "b": state["b"] + batch.sum()}, (batch[:3] * unused.sum()).sum()

    state = {"w": array(D8, (64, 64), "data"), "b": array(D8, (32,))}
    return jax.jit(step, donate_argnums=(0, 2)).lower(state, array(D8, (64, 8), "data"), array(D8, (7, 5)))


@program(D8)
def replicated_output():
    return jax.jit(jnp.sin, out_shardings=NamedSharding(D8, P())).lower(array(D8, (64, 8), "data"))


@program(DM)
def matrix_product():
    return jax.jit(lambda x, w: jnp.einsum("bij,bjk->bik", x, w)).lower(
        array(DM, (8, 32, 64), "data"), array(DM, (8, 64, 16), "data", None, "model")
    )


def transformer_layer(p, x):
    length = x.shape[1]
    h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * p["g1"]  # blame: norm
    q, k, v = jnp.einsum("btd,dchk->cbthk", h, p["qkv"])  # blame: qkv
    scores = jnp.einsum("bthk,bshk->bhts", q, k) / 8  # blame: scores
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)  # blame: mask
    attended = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores, -1), v)  # blame: attention
    x = x + jnp.einsum("bthk,hkd->btd", attended, p["o"])  # blame: project
    h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * p["g2"]  # blame: norm
    return x + jax.nn.gelu(h @ p["up"]) @ p["down"]  # blame: mlp


@program(grid(data=4, model=2))
def transformer(layers=12):
    mesh = grid(data=4, model=2)
    d, h, f = 64, 4, 128

    def loss(params, tokens, targets):
        x = params["emb"][tokens]  # blame: embed
        for p in params["layers"]:
            x = transformer_layer(p, x)
        logits = x @ params["emb"].T  # blame: logits
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)  # blame: loss
        return -jnp.mean(picked)  # blame: loss

    def step(params, tokens, targets):
        grads = jax.grad(loss)(params, tokens, targets)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)  # blame: update

    def layer():
        return {
            "g1": array(mesh, (d,)),
            "g2": array(mesh, (d,)),
            "qkv": array(mesh, (d, 3, h, 16), "data", None, "model"),
            "o": array(mesh, (h, 16, d), "model", None, "data"),
            "up": array(mesh, (d, f), "data", "model"),
            "down": array(mesh, (f, d), "model", "data"),
        }

    params = {"layers": [layer() for _ in range(layers)], "emb": array(mesh, (128, d), "model", "data")}
    tokens = array(mesh, (8, 32), "data", dtype=jnp.int32)
    same = jax.tree.map(lambda p: p.sharding, params)
    return jax.jit(step, donate_argnums=0, out_shardings=same).lower(params, tokens, tokens)


def main(folder):
    facts = {}
    for name, (build, mesh) in PROGRAMS.items():
        compiled = build().compile()
        (folder / f"{name}.hlo.txt").write_text(compiled.as_text())
        facts[name] = {
            "mesh": None if mesh is None else [[axis, size] for axis, size in mesh.shape.items()],
            "flops": (compiled.cost_analysis() or {}).get("flops"),
            "arguments": compiled.memory_analysis().argument_size_in_bytes,
            "outputs": compiled.memory_analysis().output_size_in_bytes,
            "aliased": compiled.memory_analysis().alias_size_in_bytes,
        }
    (folder / "programs.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
