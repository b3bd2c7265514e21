"""With libtpu installed: ``jaxscope run --check --target`` in one go, and advice that is followed.

Where libtpu is not installed these tests say so and are skipped: pip install 'jaxscope[tpu]'.
"""

import subprocess
import sys

import pytest
from beside import FOR_TPUS

from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = FOR_TPUS

STEP = """
import jax, jax.numpy as jnp

@jax.jit
def step(w, x):
    return jnp.tanh(x @ w)

step(jnp.ones((256, 256)), jnp.ones((64, 256)))
"""
REPLICATED = """
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))

@jax.jit
def update(params, scale):
    return jax.tree.map(lambda p: p * scale, params)

split = NamedSharding(mesh, SPEC)
shape = jax.ShapeDtypeStruct((1 << 16, 1 << 15), "float32", sharding=split)
update.lower({"up": shape, "down": shape}, jax.ShapeDtypeStruct((), "float32")).compile()
"""


@pytest.fixture
def run(tmp_path, clean_env):
    def call(text, *options):
        (tmp_path / "program.py").write_text(text)
        where = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", "run", "-q", "-o", str(where), *options, "program.py"],
            env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280,
        )  # fmt: skip
        return done, RunDir(where)

    return call


def test_a_run_is_held_to_limits_for_its_target_as_soon_as_that_is_compiled(run):
    done, directory = run(STEP, "--target", "v5e:1x1", "--check", "max-peak-bytes=64 KiB")
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stderr.split())
    assert "JX591 step#1 for v5e:1x1 takes" in said and "64.0 KiB allowed" in said
    assert {p.state for p in load(directory).retargeted.values()} == {"ok"}
    done, _ = run(STEP, "--target", "v5e:1x1", "--check", "max-peak-bytes=1 GiB,strict")
    assert done.returncode == 0, done.stderr


def test_a_spec_that_names_a_target_of_its_own_is_held_to_that(run):
    done, _ = run(STEP, "--target", "v5e:1x1", "--check", "target=v5e:2x2")
    assert done.returncode == 3 and "the run was not compiled for v5e:2x2; it was for v5e:1x1" in done.stderr


def test_parameters_that_fill_a_chip_fit_when_they_are_split_over_the_mesh_as_is_advised(run):
    found = []
    for spec in ("P()", 'P("model")'):
        done, directory = run(REPLICATED.replace("SPEC", spec), "--target", "v5e:2x2", "--wait-targets")
        assert done.returncode == 0, done.stderr
        found.append([f for f in registry.findings(load(directory)) if f.code == "JX801"])
    (f,) = found[0]
    assert words.fix_text(f).startswith(
        "shard params['down'] over the mesh (PartitionSpec)"
    ) and f.contexts.targets == ["v5e:2x2"]
    assert words.evidence(f.evidence[1]) == "argument params['down']: 8.0 GiB on each device"
    assert found[1] == []
