"""Two compilations of a real sharded function: the collective that came, at its line."""

import pytest

from jaxscope.log.store import RunDir
from jaxscope.model import diff
from jaxscope.model.function_lookup import find_compilations
from jaxscope.model.load import load

pytestmark = [pytest.mark.capture, pytest.mark.costly]

PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rows, cols = NamedSharding(mesh, P("data", None)), NamedSharding(mesh, P(None, "data"))

@jax.jit
def step(w, x):
    h = x @ w  # LINE
    return jax.lax.with_sharding_constraint(jnp.tanh(h), rows)

def loop(w, x):
    return jax.lax.fori_loop(0, 4, lambda i, x: jnp.tanh(step(w, x)), x)

w = jax.device_put(jnp.ones((256, 256)), NamedSharding(mesh, P()))
step(w, jax.device_put(jnp.ones((64, 256)), rows))
step(jax.device_put(w, rows), jax.device_put(jnp.ones((64, 256)), rows))
jax.jit(loop)(w, jax.device_put(jnp.ones((64, 256)), rows))
jax.jit(loop, donate_argnums=1)(jax.device_put(w, rows), jax.device_put(jnp.ones((64, 256)), rows))
"""


@pytest.fixture(scope="module")
def run(record_module):
    done = record_module(PROGRAM, env={"XLA_FLAGS": "--xla_force_host_platform_device_count=8"})
    return load(RunDir(done.run.path))


def between(run, name):
    numbered = [
        c for f in find_compilations(run, name)[0] for _, c in run.numbered(f) if "compiled" in c.reached
    ]
    first, second = sorted(numbered, key=lambda c: c.t_ns)
    return diff.compilations(run, first, run, second)


def line_of(mark):
    return next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if mark in text)


def test_parameters_that_lie_in_pieces_are_gathered_at_the_line_that_uses_them(run):
    found = between(run, "step")
    assert [(c.kind, c.path) for c in found.causes] == [("sharding", "w")]
    (gather,) = found.program.collectives
    assert (gather.before, gather.count) == (None, 1)
    assert (gather.after.kind, gather.after.axes, gather.after.bytes) == (
        "all-gather",
        ("data",),
        256 * 256 * 4,
    )
    assert (gather.after.executions, gather.after.source.line) == (1, line_of("# LINE"))
    memory = {f.what: (f.before, f.after) for f in found.program.memory}
    assert memory["argument_bytes"][0] - memory["argument_bytes"][1] == 256 * 256 * 4 * 7 // 8


def test_donation_is_reported_by_the_name_of_the_argument(run):
    found = between(run, "loop")
    donated = {d.name: d for d in found.program.donation}
    assert donated["x"].after == "aliased"
    assert all(c.after.kind == "all-gather" for c in found.program.collectives)
    assert sum(c.count for c in found.program.collectives) == 1
