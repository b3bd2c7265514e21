"""A loop that Python unrolled is one finding, whichever functions and passes have it."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = [pytest.mark.capture, pytest.mark.costly]
PROGRAM = """
import jax, jax.numpy as jnp

def loss(ws, x):
    LOOP
    return (x**2).mean()

@jax.jit
def step(ws, x):
    value, g = jax.value_and_grad(loss)(ws, x)
    return jax.tree.map(lambda w, g: w - 0.1 * g, ws, g), value

@jax.jit
def evaluate(ws, x):
    return jnp.sqrt(loss(ws, x))

ws = WEIGHTS
step(ws, jnp.ones((4, 16)))
evaluate(ws, jnp.ones((4, 16)))
"""
WRITTEN = PROGRAM.replace("WEIGHTS", "[jnp.ones((16, 16)) for _ in range(12)]").replace(
    "LOOP", "for w in ws: x = jnp.tanh(x @ w) / (1 + jnp.abs(x)) + x"
)
SCANNED = PROGRAM.replace("WEIGHTS", "jnp.ones((12, 16, 16))").replace(
    "LOOP", "x = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w) / (1 + jnp.abs(x)) + x, None), x, ws)[0]"
)


def unrolled(record, program):
    return [f for f in registry.findings(load(record(program).run)) if f.code == "JX202"]


def test_one_loop_is_one_finding_and_a_scan_is_none(record):
    (f,) = unrolled(record, WRITTEN)
    assert "JAX unrolled a Python loop in loss, which step calls: " in words.title(f)
    assert (
        words.title(f).endswith("; the same loop is also compiled as a part of evaluate")
        and len(f.evidence) >= 3
    )
    blocks = [text for text in map(words.evidence, f.evidence) if text.startswith("a block of ")]
    assert {text.rpartition(" in ")[2] for text in blocks} == {"step", "evaluate"}
    assert words.fix_text(f).startswith("write the loop as state, outputs = jax.lax.scan(body, state, ws)")
    assert (f.source.line, f.source.function) == (5, "loss")
    assert unrolled(record, SCANNED) == []


FEW = """
import jax, jax.numpy as jnp

@jax.jit
def forward(ws, x):
    x = REST
    for w in ws:
        BODY
    return x

forward([jnp.ones((16, 16)) for _ in range(5)], jnp.ones((4, 16)))
"""
SMALL = "x = jnp.tanh(x @ w) + x"
NAMES = ["sin", "cos", "tan", "tanh", "exp", "abs", "sign", "floor", "ceil"]
LARGE = "; ".join(f"x = jnp.{name}(x @ w) + x" for name in NAMES * 2)
LARGE += "; x = jnp.sqrt(x); x = jnp.log1p(x @ w); x = jnp.square(x) @ w; x = jnp.expm1(x)"
OTHER = "x + " + " + ".join(f"(x @ jnp.ones((16, {n}))).sum()" for n in range(1, 150))


@pytest.mark.long
def test_few_iterations_are_a_note_if_they_are_large_and_most_of_the_program(record):
    (f,) = unrolled(record, FEW.replace("BODY", LARGE).replace("REST", "x"))
    assert f.severity == "note" and words.title(f).endswith(" operations is repeated 5 times")
    assert unrolled(record, FEW.replace("BODY", SMALL).replace("REST", "x")) == []
    assert unrolled(record, FEW.replace("BODY", LARGE).replace("REST", OTHER)) == []


TWO = """
import jax, jax.numpy as jnp

def encode(ws, x):
    for w in ws:
        x = jnp.tanh(x @ w)
        x = x / (1 + jnp.abs(x))
    return x

def decode(ws, x):
    for w in ws:
        y = jnp.sin(x @ w) * 2
        x = y + jnp.cos(x)
    return x

@jax.jit
def both(a, b, x):
    return jax.grad(lambda a: decode(b, encode(a, x)).mean())(a)

ws = [jnp.ones((16, 16)) for _ in range(12)]
both(ws, ws, jnp.ones((4, 16)))
"""


def test_two_loops_of_one_function_are_two_findings(record):
    found = unrolled(record, TWO)
    assert len(found) == 2
    assert {f.source.function for f in found} == {"encode", "decode"}


def test_the_seconds_of_a_loop_are_those_of_the_program_by_its_share_of_the_operations(record):
    run = load(record(WRITTEN).run)
    (f,) = [f for f in registry.findings(run) if f.code == "JX202"]
    spent = sum(g.seconds for g in run.functions.values() if g.seen.name in ("step", "evaluate"))
    assert 0.7 * spent < f.seconds < spent  # 11 of 12 turns, and the update of the parameters is no part
    assert sum("with a scan, it has" in words.evidence(e) for e in f.evidence) == 2


RECOMPILED = """
double = jax.jit(lambda x: x * 2)
for n in 3, 4, 5:
    double(jnp.ones(n))
"""


def test_a_loop_that_costs_most_is_the_first_finding(record):
    first, *others = registry.findings(load(record(WRITTEN + RECOMPILED).run))
    assert first.code == "JX202" and "JX101" in {f.code for f in others}


# The words of the advice, modules with a loop over layers, and the same modules with the advice applied.
LAYERS = {
    "flax.nnx": (
        ("nnx.scan over", "nnx.vmap creates layers", "nnx.fori_loop"),
        """
import jax, jax.numpy as jnp
from flax import nnx

class Block(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(16, 32, rngs=rngs), nnx.Linear(32, 16, rngs=rngs)
    def __call__(self, x):
        return x + self.b(nnx.gelu(self.a(x)))
MODEL
@nnx.jit
def step(net, x):
    return nnx.value_and_grad(lambda net: (net(x) ** 2).mean())(net)[0]
step(Net(nnx.Rngs(0)), jnp.ones((8, 16)))
""",
        """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.blocks = nnx.List([Block(rngs) for _ in range(12)])
    def __call__(self, x):
        for block in self.blocks:
            x = block(x)  # the loop
        return x
""",
        """
class Net(nnx.Module):
    def __init__(self, rngs):
        @nnx.split_rngs(splits=12)
        @nnx.vmap
        def create(rngs): return Block(rngs)
        self.blocks = create(rngs)
    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def scan(x, block): return block(x)
        return scan(x, self.blocks)
""",
    ),
    "flax.linen": (
        ("nn.scan(lambda", "variable_axes={'params': 0}, split_rngs=", "variable_broadcast"),
        """
import jax, jax.numpy as jnp
from flax import linen as nn

class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.Dense(16)(nn.gelu(nn.Dense(32)(x))), None
MODEL
params = jax.jit(Net().init)(jax.random.key(0), jnp.ones((8, 16)))
@jax.jit
def step(params, x):
    return jax.value_and_grad(lambda p: (Net().apply(p, x) ** 2).mean())(params)
step(params, jnp.ones((8, 16)))
""",
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(12):
            x, _ = Block()(x, None)  # the loop
        return x
""",
        """
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        scanned = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=12)
        return scanned()(x, None)[0]
""",
    ),
    "equinox": (
        ("jax.lax.scan over", "eqx.filter_vmap creates layers", "jax.lax.fori_loop"),
        """
import jax, jax.numpy as jnp, equinox as eqx

class Block(eqx.Module):
    a: eqx.nn.Linear
    b: eqx.nn.Linear
    def __init__(self, key):
        self.a, self.b = eqx.nn.Linear(16, 32, key=key), eqx.nn.Linear(32, 16, key=key)
    def __call__(self, x):
        return x + self.b(jax.nn.gelu(self.a(x)))
MODEL
@eqx.filter_jit
def step(net, x):
    return eqx.filter_value_and_grad(lambda net: (jax.vmap(net)(x) ** 2).mean())(net)
step(Net(jax.random.key(0)), jnp.ones((8, 16)))
""",
        """
class Net(eqx.Module):
    blocks: list
    def __init__(self, key):
        self.blocks = [Block(k) for k in jax.random.split(key, 12)]
    def __call__(self, x):
        for block in self.blocks:
            x = block(x)  # the loop
        return x
""",
        """
class Net(eqx.Module):
    blocks: Block
    def __init__(self, key):
        self.blocks = eqx.filter_vmap(Block)(jax.random.split(key, 12))
    def __call__(self, x):
        arrays, rest = eqx.partition(self.blocks, eqx.is_array)
        return jax.lax.scan(lambda x, a: (eqx.combine(a, rest)(x), None), x, arrays)[0]
""",
    ),
}


@pytest.mark.parametrize("library", LAYERS)
@pytest.mark.long
def test_the_finding_names_the_loop_over_layers_and_what_the_library_has_for_it(record, library):
    pytest.importorskip(library)
    wanted, program, loop, scanned = LAYERS[library]
    code = program.replace("MODEL", loop)
    (f,) = unrolled(record, code)
    assert f.source.line == 1 + code[: code.index("# the loop")].count("\n")
    assert f.fix.arguments["library"] == library
    assert all(part in words.fix_text(f) for part in wanted)
    assert unrolled(record, program.replace("MODEL", scanned)) == []
