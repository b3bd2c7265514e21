"""Communication that the partitioner put in: told once a line, and not where fully sharded parameters ask for it."""

import pytest

from jaxscope.model.load import load
from jaxscope.rules import registry

pytestmark = pytest.mark.capture
FOUR = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
FSDP = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

def put(a, *spec):
    return jax.device_put(a, NamedSharding(mesh, P(*spec)))

def loss(params, x):
    return jnp.mean((jax.nn.relu(x @ params["up"]) @ params["down"]) ** 2)

@jax.jit
def step(params, x):
    g = jax.grad(loss)(params, x)
    new = jax.tree.map(lambda p, g: p - 0.1 * g, params, g)
    return jax.lax.with_sharding_constraint(new, jax.tree.map(lambda a: NamedSharding(mesh, P("data")), new))

params = {"up": put(jnp.ones((512, 1024)), "data"), "down": put(jnp.ones((1024, 512)), "data")}
step(params, put(jnp.ones((16, 512)), WHERE))
"""
TWO = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

def whole(a):
    return jax.lax.with_sharding_constraint(a, NamedSharding(mesh, P(SPLIT)))

@jax.jit
def both(x, y):
    return whole(x * 2), whole(y * 3)

both(*(jax.device_put(jnp.ones((1024, n)), NamedSharding(mesh, P("data"))) for n in (1024, 512)))
"""


def inserted(record, program):
    return [f for f in registry.findings(load(record(program, env=FOUR).run)) if f.code == "JX401"]


def test_weights_that_are_gathered_for_a_split_batch_are_no_finding(record):
    assert inserted(record, FSDP.replace("WHERE", '"data"')) == []


def test_gathers_of_one_line_are_one_finding_with_its_sizes(record):
    (f,) = inserted(record, TWO.replace("SPLIT", ""))
    assert f.title in (
        "both: the partitioner inserted 2 all-gathers over data: 1 of 4.0 MiB, 1 of 2.0 MiB a call",
        "both: the partitioner inserted 2 all-gathers over data: 1 of 2.0 MiB, 1 of 4.0 MiB a call",
    )
    assert inserted(record, TWO.replace("SPLIT", '"data"')) == []


def test_the_advice_to_split_a_weight_leads_to_no_advice_to_put_it_together(record):
    """What JX502 advises makes the partitioner gather: JX401 must not advise against it."""
    split = FSDP.replace("WHERE", '"data"').replace("import jax, ", "import jaxscope, jax, ")
    whole = split.replace(', "data")', ")").replace("WHERE)", ")").replace('P("data"))', "P())")
    codes = {}
    for name, program in (("whole", whole), ("split", split)):
        program = program.replace("\nstep(", "\nparams = step(") + "jaxscope.snapshot()\n"
        found = registry.findings(load(record(program, env=FOUR).run))
        codes[name] = {f.code: f.fix for f in found if f.code in ("JX401", "JX502")}
    assert "the axis 'data' in its PartitionSpec" in codes["whole"]["JX502"]
    assert codes["split"] == {}
