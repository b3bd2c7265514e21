"""The matrix products that several devices repeat, in programs that the JAX at hand compiles for eight devices."""

import json
import subprocess
import sys

import pytest

from jaxscope.analysis import repeated_products
from jaxscope.analysis.programs import analyze

CODE = """import json, sys
from functools import partial
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

TEXTS = {}

def save(name, function, *args):
    lowered = function.lower(*args)
    TEXTS[name] = lowered.compile().as_text(), lowered.as_text(debug_info=True)

def on(x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))

def network(spec, w1, w2, x):
    h = x @ w1  # first
    if spec is not None:
        h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P(*spec)))  # constraint
    return jnp.tanh(h) @ w2  # second

def loop(w, x):
    return jax.lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, None, 7)[0]  # loop

def mapped(w, x):
    return jax.shard_map(lambda w, x: x @ w, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))(w, x)

def powers(a, b, x):
    u = jnp.linalg.matrix_power(a, 6) @ x
    return u, jnp.linalg.matrix_power(b, 6) @ x  # lowered once for both lines

def gathered(w, x):
    return x @ jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P(None, None)))

w1, w2 = on(jnp.ones((128, 256)), None, "model"), on(jnp.ones((256, 128)), "model", None)
x, w = on(jnp.ones((256, 128)), "data"), on(jnp.ones((128, 128)))
for name, spec in (("none", None), ("whole", (None, "model")), ("open", (P.UNCONSTRAINED, "model")), ("named", ("data", "model"))):
    save(name, jax.jit(partial(network, spec)), w1, w2, x)
save("gradient", jax.jit(jax.grad(lambda *a: network((None, "model"), *a).sum(), argnums=(0, 1))), w1, w2, x)
save("unused_axis", jax.jit(loop), w, x)
save("both_axes", jax.jit(loop), w, on(jnp.ones((256, 128)), ("data", "model")))
a = on(jnp.ones((8, 64, 64)), ("data", "model"))
save("powers", jax.jit(powers), a, a, a)
save("gathered", jax.jit(gathered), on(jnp.ones((128, 128)), "data"), x)
save("little", jax.jit(loop), w[:8, :8], x[:8, :8])
save("by_hand", jax.jit(mapped), w, x)
json.dump(TEXTS, open(sys.argv[1], "w"))
"""


@pytest.fixture(scope="module")
def repeated(made_once, clean_env):
    """What devices repeat in the program with a name."""
    folder = made_once("repeated_products", lambda folder: compile_in(folder, clean_env))
    texts = json.loads((folder / "texts.json").read_text())
    return {name: repeated_products.find(analyze(*both)) for name, both in texts.items()}


def compile_in(folder, env):
    (folder / "program.py").write_text(CODE)
    subprocess.run(
        [sys.executable, "program.py", "texts.json"],
        cwd=folder,
        env={**env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
        check=True,
        timeout=240,
    )
    return folder


def line(mark):
    [found] = [n for n, text in enumerate(CODE.splitlines(), 1) if text.endswith(f"# {mark}")]
    return found


pytestmark = [pytest.mark.capture, pytest.mark.subprocess]


def test_a_constraint_without_the_axis_of_the_batch_repeats_the_product_before_it(repeated):
    found = repeated["whole"]
    first = 2 * 256 * 128 * 256  # flops of either product
    # Each of the four devices along "data" computes all of the first product.
    assert (found.devices, found.needed) == (8, 2 * first)
    assert found.flops == (4 + 1) * first or found.flops == (4 + 4) * first
    assert found.axes == ("data",)
    assert (found.constraint.asked.text, found.constraint.source.line) == (
        "P(None, 'model')",
        line("constraint"),
    )
    assert found.lines[0].line in (line("first"), line("second"))
    assert repeated["gradient"].axes == ("data",)


@pytest.mark.parametrize("name", ["none", "open", "named", "both_axes", "powers"])
def test_a_program_whose_work_is_split_over_all_devices_repeats_nothing(repeated, name):
    assert repeated[name] is None


def test_a_mesh_axis_that_splits_no_argument_is_named(repeated):
    found = repeated["unused_axis"]
    assert (found.axes, found.constraint, [f.line for f in found.lines]) == (("model",), None, [line("loop")])
    assert found.needed == 7 * 2 * 256 * 128 * 128  # seven iterations
    assert found.flops == 2 * found.needed


def test_a_weight_that_is_gathered_is_not_to_blame_for_an_axis_that_splits_nothing(repeated):
    assert (repeated["gathered"].constraint, repeated["gathered"].axes) == (None, ("model",))


def test_small_products_and_those_in_shard_map_are_left_out(repeated):
    assert (repeated["little"], repeated["by_hand"]) == (None, None)
