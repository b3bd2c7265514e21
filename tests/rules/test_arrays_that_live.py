"""JX502 on looks written by hand and on a real program: whose copies, how many, and what to split them over."""

from __future__ import annotations

import subprocess
import sys

import handwritten_runs
import pytest
from handwritten_runs import Log

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.keys import Frame, Sharding

MIB = 1 << 20
EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
SPECS = ["P()", "P(None, 'tp')", "P('tp', None)", "P('dp',)", "P('dp', 'tp')"]
LINE = Frame(f"{handwritten_runs.CWD}/train.py", 30, "main")


def named(spec, axes):
    text = ",".join(f"{a}={n}" for a, n, _ in axes)
    return Sharding("NamedSharding", f"{spec} on {text}", "0-7", axes, spec, "device")


TWO = [named(s, (("dp", 4, "Auto"), ("tp", 2, "Auto"))) for s in SPECS]
ONE = [named("P()", (("data", 8, "Auto"),)), named("P('data',)", (("data", 8, "Auto"),))]


def array(path, spec, units, shape=(1024, 512)):
    """``units``: how often 16 MiB of it are on each device."""
    size = int(16 * units * MIB)
    return ArrayGroup(path, 1, shape, "float32", size, size, spec, True, "(0, 1)", LINE)


def look(*groups, table=TWO, why="asked", memory=()):
    return ev.ArraysSeen(
        why=why,
        count=len(groups),
        groups=list(groups),
        shardings=table,
        addressable="0-7",
        memory=list(memory),
    )


@pytest.fixture
def found(tmp_path):
    def make(*looks):
        directory = store.create(tmp_path / "run", name="run", argv=[])
        log = Log(directory)
        log.backend(8)
        for one in looks:
            log.say(one, after=1.0)
        log.end()
        return [f for f in registry.findings(load(directory)) if f.code == "JX502"]

    return make


def test_what_its_siblings_are_split_over_is_distinguished_from_plain_data_parallelism(found):
    siblings = [array("params['up']", 1, 4), array("params['down']", 2, 3)]
    rest, mistake = sorted(
        found(look(array("params['emb']", 0, 8), *siblings)), key=lambda f: "emb" in words.title(f)
    )
    assert words.title(mistake) == (
        "params['emb'] is replicated 8 times over mesh axes 'dp' and 'tp' (params['up'] and 1 other array of params are sharded "
        "over 'tp'): it takes 128.0 MiB on each device. If it is sharded over 'tp', it takes 64.0 MiB less"
    )
    assert (
        words.fix_text(mistake)
        == "shard dimension 0 of params['emb'] over the mesh axis 'tp', like params['up'], where the program makes it: "
        "PartitionSpec('tp', None) in jax.device_put, in out_shardings of jit, or in jax.lax.with_sharding_constraint. "
        "But each call that needs a whole array then first copies its other parts to each device: up to 64.0 MiB"
    )
    assert mistake.fix.arguments == {"path": "params['emb']", "dimension": 0, "axis": "tp"}
    assert words.title(rest).startswith(
        "params is replicated 4 times over mesh axis 'dp': it takes 112.0 MiB"
    )


def test_with_the_mistake_mended_another_thing_is_reported(found):
    [finding] = found(
        look(array("params['emb']", 1, 4), array("params['up']", 1, 4), array("params['down']", 2, 3))
    )
    assert words.title(finding).startswith("params is replicated 4 times over mesh axis 'dp'")
    assert "sharded over 'tp'" not in words.title(finding)


def test_where_nothing_of_the_tree_is_split_the_largest_axis_is_advised(found):
    [finding] = found(look(array("params['emb']", 0, 8), array("other", 1, 1)))
    assert words.title(finding) == (
        "params['emb'] is replicated 8 times over mesh axes 'dp' and 'tp': it takes 128.0 MiB on each device. If it is "
        "sharded over 'dp', it takes 96.0 MiB less"
    )


def test_an_axis_that_no_dimension_divides_is_not_advised(found):
    [finding] = found(look(array("p['emb']", 0, 8, (2, 511)), array("p['up']", 3, 1)))
    assert "it is sharded over 'tp', it takes" in words.title(finding)


def test_where_no_dimension_divides_there_is_nothing_to_advise(found):
    assert found(look(array("p['emb']", 0, 8, (17, 511)))) == []


def test_plain_data_parallelism_is_reported_in_one_sentence(found):
    [finding] = found(look(array("params['a']", 0, 8), array("params['b']", 0, 2), table=ONE))
    assert words.title(finding) == (
        "params is replicated 8 times over mesh axis 'data': it takes 160.0 MiB on each device. "
        "If it is sharded over 'data', it takes 140.0 MiB less (2 arrays; the largest: params['a'])"
    )


@pytest.mark.parametrize(
    ("units", "limit", "severity"),
    [
        (8, None, "warning"),  # 64 MiB less on each device
        (7, None, "note"),
        (2, None, "note"),
        (1, None, None),
        (2, 80 << 30, None),  # a device has 80 GiB: 16 MiB do not matter
        (10, 80 << 30, "note"),
        (40, 80 << 30, "warning"),
        (0.25, 2 << 30, "note"),
    ],
)
def test_bytes_are_compared_with_the_memory_of_a_device(units, limit, severity, found):
    memory = [DeviceMemory(d, 1 << 20, limit, limit) for d in range(8)] if limit is not None else ()
    rows = [array("params['emb']", 0, units), array("params['up']", 1, 0.01)]
    known = {f.severity for f in found(look(*rows, memory=memory)) if "emb" in words.title(f)}
    assert known == {severity} - {None}


def test_what_the_fullest_look_does_not_name_is_found_in_another(found):
    fuller = look(array(None, 0, 20), array("batch", 3, 1))
    [finding] = found(fuller, look(array("params['emb']", 0, 8)))
    assert words.title(finding).startswith("params['emb'] is replicated 8 times")


def test_what_is_split_in_the_fullest_look_has_been_mended(found):
    fuller = look(array("params['emb']", 4, 8), array("moments", 4, 8))
    assert found(look(array("params['emb']", 0, 8)), fuller) == []


PROGRAM = """
import jax, jax.numpy as jnp
from functools import partial
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
put = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))

def main():
    params = {"up": put(jnp.ones((256, 512)), None, "tp"), "emb": put(jnp.ones((20480, 512)))}
    kept = {k: v.sharding for k, v in params.items()}

    @partial(jax.jit, donate_argnums=0, out_shardings=(kept, None))
    def update(params, x):
        loss, g = jax.value_and_grad(lambda p: jnp.mean((x @ p["emb"] @ p["up"].T) ** 2))(params)
        return jax.tree.map(lambda a, b: a - 0.1 * b, params, g), loss

    for step in range(6):
        params, loss = update(params, put(jnp.full((8, 20480), step), "dp"))
        float(loss)
    return params

"""


@pytest.mark.capture
@pytest.mark.parametrize(
    ("options", "end"),
    [
        ([], "main()"),  # its arrays are gone when the program ends
        pytest.param([], "params = main()", marks=pytest.mark.long),
        pytest.param(["--step-function", "update"], "main()", marks=pytest.mark.long),
        pytest.param(["--step-function", "update"], "params = main()", marks=pytest.mark.long),
    ],
)
@pytest.mark.costly
def test_donated_parameters_are_named_however_steps_are_counted(options, end, tmp_path, clean_env):
    (tmp_path / "train.py").write_text(PROGRAM + end)
    command = [sys.executable, "-m", "jaxscope", "run", "-q", "-o", "recorded", *options, "train.py"]
    subprocess.run(command, cwd=tmp_path, env={**clean_env, **EIGHT}, check=True, timeout=240)
    findings = registry.findings(load(RunDir(tmp_path / "recorded")))
    [finding] = [f for f in findings if f.code == "JX502" and "8 times" in words.title(f)]
    assert (
        "params['emb'] is replicated 8 times over mesh axes 'dp' and 'tp' (params['up'] is sharded over 'tp')"
        in words.title(finding)
    )
