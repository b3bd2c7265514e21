"""What is read of a text is what MLIR itself says of the same module, operation by operation."""

import pytest

from jaxscope.analysis.stablehlo import reader
from jaxscope.analysis.stablehlo.locations import Locations

pytestmark = pytest.mark.capture

# One of nearly everything that JAX lowers on a CPU.
MANY = """
import jax.lax as lax, jax.scipy as jsp
from jax.experimental import io_callback, checkify
x = jnp.ones((4, 6)); v = jnp.arange(6.0); i = jnp.arange(4); key = jax.random.key(0)
def everything(x, v, i, key):
    out = [jnp.sort(x), jnp.argsort(v), lax.top_k(v, 2), jnp.cumsum(v), lax.cummax(v), lax.associative_scan(jnp.add, v)]
    out += [x[i % 4], x.at[i].add(1.0), x.at[i, i].set(2.0, mode="drop"), jnp.take(x, i, axis=1), jnp.pad(x, 1)]
    out += [jnp.fft.fft(v), jnp.linalg.svd(x, full_matrices=False), jsp.linalg.cholesky(x @ x.T + 9 * jnp.eye(4))]
    out += [jsp.linalg.solve_triangular(jnp.eye(4), x), jsp.special.erf(v), jsp.special.gammaln(v + 1), lax.erf_inv(v / 9)]
    out += [lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((2, 3, 3, 3)), (1, 1), "SAME")]
    out += [lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"), lax.reduce(v, 1.0, lambda a, b: a * b + 1, (0,))]
    out += [lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, v))]
    out += [lax.cond(v[0] > 0, jnp.sin, jnp.cos, v), lax.switch(i[0], [jnp.sin, jnp.cos, lambda a: a], v)]
    out += [lax.fori_loop(0, 5, lambda k, c: c + k, v), lax.scan(lambda c, y: (c + y, c * y), 0.0, v)]
    out += [jax.random.normal(key, (3,)), jax.random.categorical(key, v), jax.random.permutation(key, 5)]
    out += [lax.rng_bit_generator(jax.random.key_data(jax.random.key(0, impl="rbg")), (3,))]
    out += [jnp.einsum("ab,cb->ac", x, x), lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)]
    out += [jnp.where(x > 0, x, -x), jnp.clip(x, 0, 1), x.astype(jnp.bfloat16), x.astype(jnp.float8_e4m3fn), jnp.round(x), v[::-1]]
    out += [lax.bitcast_convert_type(x, jnp.uint32), jnp.iscomplex(v + 1j), jnp.real(v + 2j), lax.population_count(i), lax.clz(i)]
    out += [jax.pure_callback(lambda a: a, v, v), io_callback(lambda a: a, v, v, ordered=True), lax.optimization_barrier((v, x))]
    out += [lax.dynamic_slice(x, (i[0], 0), (2, 2)), lax.dynamic_update_slice(x, x[:1], (i[0], 0)), lax.stop_gradient(v)]
    out += [jax.grad(lambda a: jax.checkpoint(lambda b: jnp.tanh(jnp.sin(b)).sum())(a))(v), jax.jit(jnp.tanh, inline=False)(v)]
    out += [jax.jvp(jnp.sinc, (v,), (v,)), jax.vmap(lambda a: jnp.linalg.inv(jnp.eye(2) * (a + 1)))(v), jax.hessian(lambda a: (a**3).sum())(v)]
    jax.debug.print("a \\"quoted\\" {} % : loc(", v[0])
    with jax.named_scope('odd "name" : (with) -> % loc('):
        out += [v * 7, np.arange(40.0, dtype="f4") + v[0], np.ones((3, 4), "f4") * x[:3, :4]]
    return out
save("everything", jax.jit(everything), x, v, i, key, oracle=True)
"""

SHARDED = """
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
@partial(jax.shard_map, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b"))
def body(x):
    y = jax.lax.psum(x, "a") + jax.lax.all_gather(x, "b", tiled=True)[:2]
    y = y + jax.lax.ppermute(x, "a", [(0, 1), (1, 0), (2, 3), (3, 2)])
    return y + jax.lax.all_to_all(x.reshape(2, 1, 2), "b", 0, 0).reshape(2, 2) + jax.lax.psum_scatter(
        jnp.concatenate([x, x]), "b", tiled=True)
def step(x):
    y = body(x)
    return jax.lax.with_sharding_constraint(y @ y.T, NamedSharding(mesh, P(("a", "b"))))
save("sharded", jax.jit(step, in_shardings=NamedSharding(mesh, P("a"))), jnp.ones((8, 4)), oracle=True)
jax.config.update("jax_use_shardy_partitioner", False)
jax.clear_caches()
save("gspmd", jax.jit(step, in_shardings=NamedSharding(mesh, P("a"))), jnp.ones((8, 4)), oracle=True)
"""


def of_mlir(trees: list, skip: frozenset = frozenset()) -> list:
    return [[name, ins, outs, [of_mlir(r) for r in regions]] for name, ins, outs, _, regions in trees]


def compare(text: str, tree: list) -> int:
    """Of every operation: its name, types and location; how many were compared."""
    module = reader.read(text)
    assert module.problems == ()
    locations = Locations(module.locations)
    children: dict[int | None, list[int]] = {}
    for index, op in enumerate(module.ops):
        key = op.parent if op.parent is not None else -1 - op.function
        children.setdefault(key, []).append(index)
    seen = 0

    def one(index: int, mlir: list) -> None:
        nonlocal seen
        seen += 1
        op = module.ops[index]
        name, ins, outs, location, regions = mlir
        assert (op.name, list(op.outputs)) == (name, outs), (op, mlir[:3])
        assert op.results == len(outs)
        assert list(op.inputs) == ins, (op, ins)
        assert locations.place(op.location) == locations.place(location[4:-1]), (op, location)
        if " applies " in op.detail:  # the printer leaves the region out
            return
        many(children.get(index, []), [c for r in regions for c in r])

    def many(indices: list[int], mlir: list) -> None:
        assert [module.ops[i].name for i in indices] == [m[0] for m in mlir]
        for index, m in zip(indices, mlir, strict=True):
            one(index, m)

    functions = [c for c in tree[4][0] if c[0] == "func.func"]
    assert len(functions) == len(module.functions)
    for k, function in enumerate(functions):
        many(children.get(-1 - k, []), [c for r in function[4] for c in r])
    assert not locations.unread
    return seen


def test_nearly_everything_that_jax_lowers(lower):
    found = lower(MANY)
    assert compare(found.texts["everything"], found.trees["everything"]) > 700


def test_sharded_programs_under_shardy_and_gspmd(lower):
    found = lower(SHARDED, XLA_FLAGS="--xla_force_host_platform_device_count=8")
    assert "sdy.manual_computation" in found.texts["sharded"]
    assert "SPMDFullToShardShape" in found.texts["gspmd"]
    for name, text in found.texts.items():
        assert compare(text, found.trees[name]) > 20
