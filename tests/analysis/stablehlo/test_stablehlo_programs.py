"""Programs lowered by the installed JAX; every expected count follows from how they are built."""

import pytest
from known_lines import located_and_known

from jaxscope.analysis.stablehlo import reading

pytestmark = [pytest.mark.capture, pytest.mark.costly]

LAYERS = """
def block(p, x):
    h = jax.nn.relu(x @ p["w1"] + p["b1"])  # mark block first
    return x + h @ p["w2"]
def inline(ps, x):
    for p in ps:
        h = jnp.sin(x @ p["w1"])  # mark inline first
        x = x + h @ p["w2"]
    return x
def looped(ps, x):
    for p in ps:
        x = block(p, x)  # mark loop
    return x
ps = [{"w1": jnp.ones((8, 16)), "b1": jnp.ones(16), "w2": jnp.ones((16, 8))} for _ in range(12)]
stacked = jax.tree.map(lambda *a: jnp.stack(a), *ps)
x = jnp.ones((4, 8))
"""


def read(found, name, **known):
    result = reading.analyze(found.texts[name], **known)
    assert result.problems == ()
    return result


def test_a_loop_written_out_is_found_with_its_turns_and_its_line(lower):
    found = lower(
        LAYERS
        + """
save("unrolled", jax.jit(looped), ps, x)
save("inline", jax.jit(lambda ps, x: inline(ps, x).mean()), ps, x)
save("scan", jax.jit(lambda ps, x: jax.lax.scan(lambda x, p: (block(p, x), None), x, ps)[0]), stacked, x)
save("indexed", jax.jit(lambda ps, x: [x := block(jax.tree.map(lambda a: a[i], ps), x) for i in range(12)][-1]), stacked, x)
layer = jax.jit(block)
@jax.jit
def of_jits(ps, x):
    for p in ps:
        x = layer(p, x)  # mark call
    return x
save("of jits", of_jits, ps, x)
def loss(ps, x):
    return (looped(ps, x) ** 2).mean()
@jax.jit
def train(ps, x):
    return jax.tree.map(lambda p, g: p - 0.1 * g, ps, jax.grad(loss)(ps, x))  # mark update
save("train", train, ps, x)
save("two", jax.jit(looped), ps[:2], x)
save("partial", jax.jit(lambda ps, x: jax.lax.scan(lambda x, p: (block(p, x), None), x, ps, unroll=4)[0]), stacked, x)
"""
    )
    (loop,) = read(found, "unrolled").repeated
    # A turn: dot, two broadcasts and add of the bias; relu's broadcast and maximum; dot, add.
    assert (loop.times, loop.length, loop.carried, loop.in_loop) == (12, 8, True, False)
    assert (loop.source.line, loop.source.function) == (found.line("mark loop"), "looped")
    (loop,) = read(found, "inline").repeated
    assert (loop.times, loop.length, loop.source.line) == (12, 4, found.line("mark inline first"))
    assert read(found, "scan").repeated == ()
    (loop,) = read(found, "indexed").repeated
    assert (loop.times, loop.length) == (12, 8 + 6)  # a slice and a reshape for each of three arrays
    (loop,) = read(found, "of jits").repeated
    assert (loop.times, loop.length, loop.source.line) == (12, 8, found.line("mark call"))
    loops = read(found, "train").repeated
    forward = [r for r in loops if r.times == 12 and r.carried]
    assert [r.source.line for r in forward][:1] == [found.line("mark loop")]
    assert any(r.times >= 11 and r.carried and r not in forward[:1] for r in loops)  # the backward pass
    updates = [r for r in loops if not r.carried]
    # Three arrays a layer; each a broadcast, a product and a difference.
    assert [(r.times, r.length, r.source.line) for r in updates] == [(12, 9, found.line("mark update"))]
    assert read(found, "two").repeated == ()
    (loop,) = read(found, "partial").repeated
    assert (loop.times, loop.in_loop) == (4, True)


def test_operations_are_counted_with_calls_written_out(lower):
    found = lower(
        LAYERS
        + """
layer = jax.jit(block)
save("of jits", jax.jit(lambda ps, x: [x := layer(p, x) for p in ps][-1]), ps, x)
"""
    )
    result = read(found, "of jits")
    assert result.op_counts["stablehlo.dot_general"] == 24
    assert result.op_counts["stablehlo.maximum"] == 12
    assert result.printed < 40
    located, known = located_and_known(found.texts["of jits"])
    assert located == known > 0


def test_repetitions_inside_jax_are_not_the_users(lower):
    found = lower(
        """
save("random", jax.jit(lambda k: jax.random.normal(k, (64,))), jax.random.key(0))
save("special", jax.jit(lambda x: jax.scipy.special.gammaln(x) + jax.scipy.special.i0e(x)), jnp.ones(4))
"""
    )
    assert read(found, "random").repeated == ()
    assert read(found, "special").repeated == ()


def test_captured_arrays_are_found_with_their_bytes_and_the_line_that_uses_them(lower):
    found = lower(
        """
TABLE = np.arange(4096, dtype="f4").reshape(64, 64)
IDS = jnp.arange(40)
SMALL = np.arange(16.0, dtype="f4")
ZEROS = np.zeros((32, 32), "f4")
@jax.jit
def f(x):
    y = x + 1
    y = y @ TABLE  # mark table
    z = jnp.take(y, IDS, axis=1)  # mark ids
    return y.sum() + z.sum() + SMALL.sum() + (ZEROS @ x[:32, :1]).sum()  # mark zeros
save("captured", f, jnp.ones((64, 64)))
"""
    )
    constants = {c.shape: c for c in read(found, "captured").constants}
    assert set(constants) == {(64, 64), (40,), (32, 32)}
    table, ids, zeros = constants[64, 64], constants[40,], constants[32, 32]
    assert (table.bytes, table.dtype, table.splat) == (64 * 64 * 4, "float32", False)
    assert (ids.bytes, ids.dtype) == (160, "int32")
    assert (zeros.bytes, zeros.splat) == (4096, True)
    assert [c.source.line for c in (table, ids, zeros)] == [
        found.line(f"mark {n}") for n in ("table", "ids", "zeros")
    ]
    assert all(c.name is None for c in constants.values())


def test_double_precision_is_traced_to_where_it_enters(lower):
    found = lower(
        """
jax.config.update("jax_enable_x64", True)
@jax.jit
def f(x, y):
    a = x.astype(jnp.float64) * 2  # mark convert
    b = jnp.linspace(0.0, 1.0, 5)  # mark born
    return a.sum() + b.sum() + y.sum()
save("wide", f, jnp.ones(3, jnp.float32), jnp.ones(4, jnp.float64))
save("narrow", jax.jit(lambda x: x * 2), jnp.ones(3, jnp.float32))
""",
    )
    doubles = read(found, "wide").doubles
    assert doubles.arguments == ("y",)
    origins = {(o.kind, o.source.line): o.count for o in doubles.origins if o.source}
    assert origins["convert", found.line("mark convert")] >= 1
    assert any(line == found.line("mark born") for _, line in origins)
    assert doubles.operations > sum(origins.values())
    result = read(found, "wide")
    assert [u.source.line for u in result.upcasts if u.before == "float32"] == [found.line("mark convert")]
    assert read(found, "narrow").doubles is None


def test_upcasts_are_found_at_their_lines_forward_and_backward(lower):
    found = lower(
        """
def norm(x):
    y = x.astype(jnp.float32)  # mark up
    return (y / jnp.sqrt((y * y).mean(-1, keepdims=True))).astype(jnp.bfloat16)  # mark down
def model(ws, x):
    for w in ws:
        x = norm(x @ w)
    return x.astype(jnp.float32).sum()  # mark last
ws = [jnp.ones((8, 8), jnp.bfloat16)] * 3
x = jnp.ones((4, 8), jnp.bfloat16)
save("forward", jax.jit(model), ws, x)
save("backward", jax.jit(jax.grad(model)), ws, x)
save("none", jax.jit(lambda w, x: jax.lax.dot(x, w, preferred_element_type=jnp.float32)), ws[0], x)
"""
    )

    def told(name):
        return {
            (u.before, u.after, u.backward, u.source.line): (u.count, u.bytes)
            for u in read(found, name).upcasts
        }

    up, last, down = (found.line(f"mark {n}") for n in ("up", "last", "down"))
    size = 4 * 8 * 4
    assert told("forward") == {
        ("bfloat16", "float32", False, up): (3, 3 * size),
        ("bfloat16", "float32", False, last): (1, size),
    }
    backward = told("backward")
    assert backward["bfloat16", "float32", True, down] == (3, 3 * size)  # of the casts down
    assert backward["bfloat16", "float32", False, up] == (3, 3 * size)
    assert told("none") == {}


def test_callbacks_are_named_with_line_order_and_bytes(lower):
    found = lower(
        """
from jax.experimental import io_callback
@jax.jit
def f(x):
    y = jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4, 3), "f4"), x)  # mark pure
    jax.debug.print("sum {}", y.sum())  # mark print
    io_callback(lambda v: None, None, y, ordered=True)  # mark io
    def body(i, c):
        jax.debug.callback(lambda v: None, c)  # mark debug
        return c + 1
    y = jax.lax.cond(y.sum() > 1e9, lambda v: (jax.debug.callback(lambda w: None, v), v)[1], lambda v: v, y)  # mark cond
    return jax.lax.fori_loop(0, 3, body, y)
save("callbacks", f, jnp.ones((4, 3)))
save("none", jax.jit(lambda x: jnp.fft.fft(x)), jnp.ones(4))
"""
    )
    told = {
        c.kind: (c.source.line, c.ordered, c.in_loop, c.bytes_to_host, c.bytes_from_host)
        for c in read(found, "callbacks").callbacks
        if not c.in_branch
    }
    [branch] = [c for c in read(found, "callbacks").callbacks if c.in_branch]
    assert (branch.kind, branch.source.line) == ("debug_callback", found.line("mark cond"))
    assert told == {
        "pure_callback": (found.line("mark pure"), False, False, 48, 48),
        "debug_print": (found.line("mark print"), False, False, 4, 0),
        "io_callback": (found.line("mark io"), True, False, 48, 0),
        "debug_callback": (found.line("mark debug"), False, True, 48, 0),
    }
    assert read(found, "none").callbacks == ()


def test_donation_is_reported_by_argument_with_the_reason(lower):
    found = lower(
        """
@partial(jax.jit, donate_argnums=(0, 1, 2, 3, 4))
def f(taken, twice, dtype, shape, unread, kept, other):
    return taken + twice, dtype.sum(), shape.sum() + kept.sum(), other.astype(jnp.int32) * 2
save("donate", f, jnp.ones(4), jnp.ones(4), jnp.ones(6, jnp.bfloat16), jnp.ones(7), jnp.ones(9), jnp.ones(11), jnp.ones(6))
save("possible", jax.jit(lambda state, x: (state * 2, x.sum())), jnp.ones((8, 8)), jnp.ones(3))
"""
    )
    result = read(
        found,
        "donate",
        paths=["taken", "twice", "dtype", "shape", "unread", "kept", "other"],
        dropped=[4],
        donated=["taken", "twice", "dtype", "shape", "unread"],
    )
    told = {d.path: d for d in result.donation}
    assert (told["taken"].status, told["taken"].output) == ("aliased", "result[0]")
    assert told["twice"].status == "unused" and told["twice"].reason == (
        "the output f32[4] already reuses the memory of taken"
    )
    # As many elements as the int32 output: JAX leaves it to XLA.
    assert told["dtype"].status is None and "no output is bf16[6]" in told["dtype"].reason
    assert (told["shape"].status, told["shape"].reason) == ("unused", "no output is f32[7]")
    assert (told["unread"].status, told["unread"].reason) == ("unused", "the program never reads it")
    assert "kept" not in told and "other" not in told
    settled = read(found, "donate", donated=["taken"], aliased={0})
    assert {d.path: d.status for d in settled.donation}["dtype"] == "unused"
    assert [(d.path, d.status, d.bytes, d.output) for d in read(found, "possible").donation] == [
        ("state", "possible", 256, "result[0]")
    ]


def test_donation_across_shardings(lower):
    found = lower(
        """
from jax.sharding import Mesh, NamedSharding as NS, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
def spec(*p): return NS(mesh, P(*p))
x = jax.ShapeDtypeStruct((8, 8), "f4", sharding=spec("a", "b"))
for name, out, donate in [("same", spec("a", "b"), 0), ("differs", spec(None, "a"), 0), ("free", None, 0), ("not", spec("a", "b"), ())]:
    save(name, jax.jit(lambda x: x + 1, donate_argnums=donate, out_shardings=out), x)
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )

    def told(name):
        (one,) = read(found, name, donated=["x"] if name != "not" else []).donation
        return one

    assert (told("same").status, told("same").bytes, told("same").device_bytes) == ("aliased", 256, 32)
    assert (told("differs").status, told("differs").reason) == (
        "unused",
        "the argument has the sharding P('a', 'b'), and the output f32[8,8] has P(None, 'a')",
    )
    assert (told("free").status, told("free").reason) == (None, "XLA chooses the output's sharding")
    assert told("not").status == "possible"


SHARDED_STEP = """
from jax.sharding import Mesh, NamedSharding as NS, PartitionSpec as P
if {gspmd}:
    jax.config.update("jax_use_shardy_partitioner", False)
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
D, H, F, V, T = 32, 4, 64, 64, 16
def spec(*p): return NS(mesh, P(*p))
def rms(x, g):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * g
def layer(p, x, mask):
    q, k, v = jnp.einsum("btd,dchk->cbthk", rms(x, p["ln1"]), p["qkv"])
    s = jnp.einsum("bthk,bshk->bhts", q, k).astype(jnp.float32) / 3.0
    a = jax.nn.softmax(jnp.where(mask, s, -1e9)).astype(x.dtype)
    x = x + jnp.einsum("bhts,bshk,hkd->btd", a, v, p["o"])
    x = x + jax.nn.gelu(rms(x, p["ln2"]) @ p["w1"]) @ p["w2"]
    return jax.lax.with_sharding_constraint(x, spec("data"))  # mark constraint
def model(ps, x):
    h = ps["emb"][x]
    mask = jnp.tril(jnp.ones((T, T), bool))
    for p in ps["layers"]:
        h = layer(p, h, mask)  # mark loop
    return (h @ ps["emb"].T).astype(jnp.float32)
def loss(ps, x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(model(ps, x)), y[..., None], -1).mean()
@partial(jax.jit, donate_argnums=0)
def step(ps, x, y):
    value, grads = jax.value_and_grad(loss)(ps, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, ps, grads), value
def S(shape, *p, dtype=jnp.bfloat16): return jax.ShapeDtypeStruct(shape, dtype, sharding=spec(*p))
def one():
    return {{"ln1": S((D,)), "ln2": S((D,)), "qkv": S((D, 3, H, 8), "data", None, "model"),
            "o": S((H, 8, D), "model", None, "data"), "w1": S((D, F), "data", "model"), "w2": S((F, D), "model", "data")}}
ps = {{"emb": S((V, D), "model", "data"), "layers": [one() for _ in range(12)]}}
tokens = S((16, T), "data", dtype=jnp.int32)
save("step", step, ps, tokens, tokens)
"""


@pytest.mark.parametrize("gspmd", [False, True])
def test_a_sharded_transformer_step_is_the_users_line_by_line(lower, gspmd):
    found = lower(SHARDED_STEP.format(gspmd=gspmd), XLA_FLAGS="--xla_force_host_platform_device_count=8")
    result = read(found, "step")
    assert result.num_partitions == 8
    located, known = located_and_known(found.texts["step"])
    assert known >= 0.95 * located and located > 0.95 * result.printed
    constraints = [m for m in result.shardings if m.kind == "constraint"]
    # One a layer, and one more for its gradient.
    assert [(m.count, m.source.line) for m in constraints] == [(24, found.line("mark constraint"))]
    emb = result.arguments[0]
    assert (emb.name, emb.shape, emb.device_shape) == ("ps['emb']", (64, 32), (32, 8))
    assert (emb.bytes, emb.device_bytes) == (64 * 32 * 2, 32 * 8 * 2)
    assert constraints[0].text == (
        "{devices=[4,1,1,2]<=[8] last_tile_dim_replicate}" if gspmd else "P('data', None, None)"
    )
    if not gspmd:
        assert [m.axes for m in result.meshes] == [(("data", 4), ("model", 2))]
        assert emb.sharding.text == "P('model', 'data')"
    loops = [r for r in result.repeated if r.carried]
    assert len(loops) == 2 and all(r.times == 12 and r.source.line == found.line("mark loop") for r in loops)
    donated = result.donation
    assert len(donated) == 1 + 12 * 6  # no output says its sharding: all are XLA's to decide
    assert {(d.status, d.reason) for d in donated} == {(None, "XLA chooses the output's sharding")}


def test_nnx_and_equinox_frames_are_folded_away(lower):
    found = lower(
        """
from flax import nnx
import equinox as eqx
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(4, 8, rngs=rngs)
        self.b = nnx.Linear(8, 4, rngs=rngs)
    def __call__(self, x):
        x = nnx.relu(self.a(x))  # mark nnx a
        return self.b(x)  # mark nnx b
graph, state = nnx.split(Net(nnx.Rngs(0)))
save("nnx", jax.jit(lambda state, x: nnx.merge(graph, state)(x)), state, jnp.ones((2, 4)))
mlp = eqx.nn.MLP(4, 4, 8, 2, key=jax.random.key(0))
arrays, static = eqx.partition(mlp, eqx.is_array)
@jax.jit
def apply(arrays, x):
    return jax.vmap(eqx.combine(arrays, static))(x)  # mark equinox
save("equinox", apply, arrays, jnp.ones((2, 4)))
"""
    )
    for name in ("nnx", "equinox"):
        read(found, name)  # without problems
        located, known = located_and_known(found.texts[name])
        assert located == known > 0
    lines = by_line(found.texts["nnx"], "stablehlo.dot_general")
    assert lines == {found.line("mark nnx a"): 1, found.line("mark nnx b"): 1}
    assert by_line(found.texts["equinox"], "stablehlo.dot_general") == {found.line("mark equinox"): 3}


def by_line(text, name):
    from jaxscope.analysis.stablehlo import reader
    from jaxscope.analysis.stablehlo.sources import Sources

    module = reader.read(text)
    counts = {}
    for (file, line), indices in Sources(module).lines().items():
        assert file.endswith("user_program.py")
        if n := sum(module.ops[i].name == name for i in indices):
            counts[line] = n
    return counts


def test_operations_of_a_shared_library_function_belong_to_every_call(lower):
    found = lower(
        """
@jax.jit
def f(x):
    y = jax.nn.relu(x)  # mark first
    return jax.nn.relu(y * 2)  # mark second
save("shared", f, jnp.ones(4))
"""
    )
    expected = {found.line("mark first"): 1, found.line("mark second"): 1}
    assert by_line(found.texts["shared"], "stablehlo.maximum") == expected
    assert read(found, "shared").op_counts["stablehlo.maximum"] == 2


def test_without_full_tracebacks_there_is_still_a_line(lower):
    found = lower(
        """
jax.config.update("jax_include_full_tracebacks_in_locations", False)
save("short", jax.jit(lambda x: jnp.sin(x) * 2), jnp.ones(4))  # mark here
"""
    )
    read(found, "short")  # without problems
    located, known = located_and_known(found.texts["short"])
    assert located == known > 0
    assert by_line(found.texts["short"], "stablehlo.sine") == {found.line("mark here"): 1}
