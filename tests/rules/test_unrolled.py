"""A loop that Python unrolled is one finding, whichever functions and passes have it."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = pytest.mark.capture
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
    assert " has an unrolled loop: a block of " in words.title(f)
    assert (
        words.title(f).endswith(" other blocks of this line, in step and evaluate)") and len(f.evidence) >= 3
    )
    blocks = [text for text in map(words.evidence, f.evidence) if text.startswith("a block of ")]
    assert {text.rpartition(" in ")[2] for text in blocks} == {"step", "evaluate"}
    assert words.fix_text(f).startswith("stack the parameters of the iterations and use jax.lax.scan")
    assert unrolled(record, SCANNED) == []


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
    assert sum(words.evidence(e).startswith("with a scan, ") for e in f.evidence) == 2


RECOMPILED = """
double = jax.jit(lambda x: x * 2)
for n in 3, 4, 5:
    double(jnp.ones(n))
"""


def test_a_loop_that_costs_most_is_the_first_finding(record):
    first, *others = registry.findings(load(record(WRITTEN + RECOMPILED).run))
    assert first.code == "JX202" and "JX101" in {f.code for f in others}
