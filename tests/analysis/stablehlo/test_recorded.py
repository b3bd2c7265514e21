"""The reading of what a recording kept: names of variables and paths come from the trace and the key."""

import pytest

from jaxscope.analysis.stablehlo import reading
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

PROGRAM = """
import numpy as np, jax, jax.numpy as jnp
from flax import nnx
TABLE = np.arange(100.0, dtype="f4")
def make():
    weights = jnp.arange(64.0)
    @jax.jit
    def lookup(x):
        return (x * weights).sum() + (TABLE * x[0]).sum()
    return lookup
make()(jnp.ones(64))
class Net(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(4, 8, rngs=rngs)
net = Net(nnx.Rngs(0))
@nnx.jit(donate_argnums=0)
def step(net, x):
    net.hidden.kernel[...] = net.hidden.kernel[...] * 2
    return net.hidden(x).sum()
step(net, jnp.ones((2, 4)))
"""


def readings(recorded):
    calls = {e.call: e for e in recorded.of(ev.Missed)}
    traced = {e.call: e for e in recorded.of(ev.Traced)}
    compiled = {e.program: e for e in recorded.of(ev.Compiled)}
    texts = {e.program: e.blob for e in recorded.of(ev.ProgramText) if e.stage == "stablehlo"}
    for lowered in recorded.of(ev.Lowered):
        if lowered.program in texts:
            key = calls[lowered.call].key
            yield (
                lowered.module,
                reading.analyze(
                    recorded.run.text(texts[lowered.program]),
                    captured=traced[lowered.call].captured,
                    paths=[leaf.path for leaf in key.arguments],
                    dropped=compiled[lowered.program].dropped_arguments,
                    donated=lowered.donated,
                ),
            )


def test_captured_arrays_and_donated_leaves_go_by_the_users_names(record):
    found = dict(readings(record(PROGRAM)))
    lookup = next(r for m, r in found.items() if "lookup" in m)
    assert {(c.name, c.bytes) for c in lookup.constants} == {("weights", 256), ("TABLE", 400)}
    step = next(r for m, r in found.items() if "step" in m)
    told = {d.path: d for d in step.donation}
    assert {p for p, d in told.items() if d.status == "aliased"} == {"net.hidden.kernel", "net.hidden.bias"}
    assert [a.name for a in step.arguments if a.shape == (4, 8)] == ["net.hidden.kernel"]
    assert lookup.problems == step.problems == ()
