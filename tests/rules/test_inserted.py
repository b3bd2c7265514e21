"""Collectives that the partitioner inserted: one finding a line, and none where fully sharded parameters need them."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = [pytest.mark.capture, pytest.mark.costly]
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

params = {"up": put(jnp.ones((1024, 4096)), "data"), "down": put(jnp.ones((4096, 1024)), "data")}
step(params, put(jnp.ones((16, 1024)), WHERE))
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


# ``# HERE``: a constraint that makes the partitioner communicate; ``named`` is the same program without it.
CONSTRAINED = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

def split(*spec):
    return NamedSharding(mesh, P(*spec))

def constrained(a, *spec):
    return jax.lax.with_sharding_constraint(a, split(*spec))

def mean_square(down, h):
    return jnp.mean((h @ down) ** 2)

@jax.jit
def replicated(up, down, x):
    def loss(up, down):
        h = jax.nn.relu(x @ up)
        h = jax.lax.with_sharding_constraint(h, split())  # HERE replicated
        return mean_square(down, h)
    return jax.grad(loss, (0, 1))(up, down)

@jax.jit
def replicated_removed(up, down, x):
    def loss(up, down):
        h = jax.nn.relu(x @ up)
        return mean_square(down, h)
    return jax.grad(loss, (0, 1))(up, down)

@jax.jit
def in_a_loop(up, down, x):
    def turn(x, _):
        h = jnp.tanh(x @ up)
        h = jax.lax.with_sharding_constraint(h, split(None, "model"))  # HERE in_a_loop
        return jax.lax.with_sharding_constraint(x + h @ down, split("data")), None
    return jax.lax.scan(turn, x, None, length=3)[0]

@jax.jit
def in_a_loop_kept(up, down, x):
    def turn(x, _):
        h = jnp.tanh(x @ up)
        h = jax.lax.with_sharding_constraint(h, split("data", "model"))
        return jax.lax.with_sharding_constraint(x + h @ down, split("data")), None
    return jax.lax.scan(turn, x, None, length=3)[0]

@jax.jit
def turned(up, down, x):
    y = jnp.sin(x) * 2
    y = jax.lax.with_sharding_constraint(y, split(None, "data"))  # HERE turned
    return jnp.cos(y)

@jax.jit
def turned_kept(up, down, x):
    y = jnp.sin(x) * 2
    y = jax.lax.with_sharding_constraint(y, split("data"))
    return jnp.cos(y)

@jax.jit
def of_an_argument(up, down, x):
    x = jax.lax.with_sharding_constraint(x, split())  # HERE of_an_argument
    return jnp.cos(x)

@jax.jit
def needed_by_the_operation(up, down, x):
    y = jax.lax.with_sharding_constraint(jnp.sin(x), split("data"))
    return jnp.sort(y, axis=0)  # not the constraint's: a sort along the split dimension

arguments = (
    jax.device_put(jnp.ones((1024, 2048)), split(None, "model")),
    jax.device_put(jnp.ones((2048, 1024)), split("model")),
    jax.device_put(jnp.ones((2048, 1024)), split("data")),
)
for f in (replicated, replicated_removed, in_a_loop, in_a_loop_kept):
    f(*arguments)
for f in (turned, turned_kept, of_an_argument, needed_by_the_operation):
    f(*arguments)
"""


def inserted(record, program):
    return [f for f in registry.findings(load(record(program, env=FOUR).run)) if f.code == "JX401"]


def test_weights_that_are_gathered_for_a_split_batch_are_no_finding(record):
    assert inserted(record, FSDP.replace("WHERE", '"data"')) == []


def test_gathers_of_one_line_are_one_finding_with_its_sizes(record):
    (f,) = inserted(record, TWO.replace("SPLIT", ""))
    said = "both constrains an array to P(None, None), which causes 2 all-gathers over mesh axis 'data' (in each call: "
    assert words.title(f) in (
        f"{said}1 x 4.0 MiB, 1 x 2.0 MiB)",
        f"{said}1 x 2.0 MiB, 1 x 4.0 MiB)",
    )
    assert inserted(record, TWO.replace("SPLIT", '"data"')) == []


@pytest.mark.parametrize("shardy", ["1", "0"])
def test_communication_that_a_sharding_constraint_asks_for_is_reported_at_that_constraint(record, shardy):
    """Removing it, or keeping the split in it, as the advice says, leaves nothing to tell."""
    done = record(CONSTRAINED, env={**FOUR, "JAX_USE_SHARDY_PARTITIONER": shardy})
    run = load(done.run)
    found = {}
    for f in registry.findings(run):
        if f.code in ("JX401", "JX515"):  # JX515: devices also repeat the products beside it
            found.setdefault(run.functions[f.function].name, []).append(f)
    marked = {
        parts[-1]: n
        for n, line in enumerate(CONSTRAINED.splitlines(), 1)
        if len(parts := line.split("# HERE ")) > 1
    }
    assert {name: [f.source.line for f in fs] for name, fs in found.items() if name in marked} == {
        name: [line] for name, line in marked.items()
    }
    for name in marked:
        (f,) = found[name]
        if f.code == "JX515":
            assert (name, shardy) == ("replicated", "1") and "constraint P(None, None) does" in words.title(f)
            continue
        assert f"{name} constrains an array to P(" in words.title(f) and "inserted" not in words.title(f)
        assert words.fix_text(f).startswith("remove this sharding constraint, or ")
    if shardy == "0":
        assert words.fix_text(found["replicated"][0]).endswith(
            "so that the array stays sharded over model and data"
        )


def test_the_advice_to_split_a_weight_leads_to_no_advice_to_put_it_together(record):
    """What JX502 advises makes the partitioner gather: JX401 must not advise against it."""
    split = FSDP.replace("WHERE", '"data"').replace("import jax, ", "import jaxscope, jax, ")
    whole = split.replace(', "data")', ")").replace("WHERE)", ")").replace('P("data"))', "P())")
    codes = {}
    for name, program in (("whole", whole), ("split", split)):
        program = program.replace("\nstep(", "\nparams = step(") + "jaxscope.snapshot()\n"
        found = registry.findings(load(record(program, env=FOUR).run))
        codes[name] = {f.code: words.fix_text(f) for f in found if f.code in ("JX401", "JX502")}
    assert "over the mesh axis 'data', where the program makes it: PartitionSpec(" in codes["whole"]["JX502"]
    assert codes["split"] == {}


DROPPED = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))

@jax.jit
def initial(key):
    table = jax.random.normal(key, (1001, 512))
    return jax.lax.with_sharding_constraint(table, NamedSharding(mesh, P("model")))

initial(jax.random.key(0))
"""


def test_the_gather_of_a_result_whose_sharding_is_dropped_belongs_to_that_finding(record):
    found = registry.findings(load(record(DROPPED, env=FOUR).run))
    assert [f.code for f in found if f.code in ("JX401", "JX503")] == ["JX503"]
