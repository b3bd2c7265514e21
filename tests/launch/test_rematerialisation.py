"""XLA's warning of a real program, from its stderr to the user's line."""

import json
import subprocess
import sys

import pytest

from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.report.json_report import as_json

pytestmark = [pytest.mark.capture, pytest.mark.costly]

PROGRAM = """\
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

def pinned(*spec):
    return NamedSharding(mesh, P(*spec))

@jax.jit
def step(x):
    def inner(y):
        z = jax.lax.with_sharding_constraint(jnp.cos(y), pinned(("model", "data"), None))  # LINE
        return jnp.tanh(jax.lax.with_sharding_constraint(z, pinned(None, "model")))
    return jax.jit(inner)(x) * 2

@jax.jit
def fine(x):
    return jax.lax.with_sharding_constraint(jnp.cos(x), pinned("data"))

fine(jnp.ones((64, 32)))
step(jnp.ones((64, 32)))
step(jnp.ones((128, 32)))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, clean_env):
    """(programs of step, programs of fine, what is degraded) of a run with and of one without --tee-stderr."""
    folder = tmp_path_factory.mktemp("remats")
    (folder / "train.py").write_text(PROGRAM)
    found = {}
    for how in ("--tee-stderr", "--quiet"):
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", "run", "-q", how, "-o", f"run{how}", "train.py"],
            cwd=folder,
            env={**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        told = as_json(load(RunDir(folder / f"run{how}")))
        json.dumps(told)
        name = {f["id"]: f["name"] for f in told["functions"]}
        step, fine = (
            [p for p in told["programs"] if name[p["function"]] == wanted] for wanted in ("step", "fine")
        )
        found[how] = step, fine, told["run"]["degraded"]
    return found


def test_each_program_has_its_own_with_line_shardings_and_bytes(recorded):
    step, fine, degraded = recorded["--tee-stderr"]
    assert degraded == []
    assert [p["remats"] for p in fine] == [[]]
    assert len(step) == 2
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "# LINE" in text)
    for p in step:
        (remat,) = p["remats"]
        assert (remat["from"], remat["to"]) == ("P(('model', 'data'), None)", "P(None, 'model')")
        assert remat["source"]["file"].endswith("train.py")
        assert (remat["source"]["line"], remat["source"]["function"]) == (line, "step.<locals>.inner")
        assert "nvoluntary full rematerialization" in remat["text"]
    assert sorted(p["remats"][0]["bytes"] for p in step) == [64 * 32 * 4, 128 * 32 * 4]


def test_without_it_the_report_says_once_that_nobody_listened(recorded):
    step, fine, degraded = recorded["--quiet"]
    assert [p["remats"] for p in step + fine] == [None] * 3
    assert [d["seam"] for d in degraded] == ["stderr"]
