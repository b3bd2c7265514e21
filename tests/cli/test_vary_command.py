"""Real programs under ``--vary``, and what the other commands make of the runs within a run."""

import json
import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.capture, pytest.mark.costly, pytest.mark.long]

PROGRAM = """
import os
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

shape = [int(n) for n in os.environ["MESH"].split("x")]
mesh = Mesh(np.array(jax.devices()).reshape(shape), ("data", "model"))

@jax.jit
def step(w, x):
    return (x @ w).sum()

w = jax.device_put(np.ones((64, 64), "f4"), NamedSharding(mesh, P(None, "model")))
step(w, jax.device_put(np.ones((16, 64), "f4"), NamedSharding(mesh, P("data"))))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, clean_env):
    folder = tmp_path_factory.mktemp("varied")
    (folder / "train.py").write_text(PROGRAM)
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAXSCOPE_HOME": str(folder)}
    env.pop("COLUMNS", None)

    def call(*words, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", *words], env=env, cwd=folder, capture_output=True, text=True, timeout=240
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    call("run", "--name", "mesh", "--vary", "MESH=8x1,4x2,3x3", "train.py", code=1)
    return call


def test_the_settings_stand_side_by_side(place):
    page = place("report").stdout
    table = page[page.index("Side by side") :]
    lines = [
        re.split("  +", line.strip(), maxsplit=1) for line in table.splitlines() if line.startswith("    ")
    ]
    rows = {name: "".join(cells).split() for name, *cells in lines}
    assert rows["MESH"] == ["8x1", "4x2"] and rows["over data"] and rows["over model"][0] == "0"
    assert "◂" in rows["sent over model"] and "MESH=3x3: exit code 1" in table
    assert "none is measured" in table and page.splitlines()[1].startswith("with MESH=8x1")


def test_a_run_within_is_named_by_its_setting_or_by_its_directory(place):
    first = place("report", "latest/MESH=4x2").stdout
    assert first.splitlines()[1].startswith("with MESH=4x2  one of 3 runs of mesh-")
    assert place("report", "mesh/MESH=8x1").stdout.splitlines()[1].startswith("with MESH=8x1  other runs:")
    assert "MESH=8x1, MESH=4x2, MESH=3x3" in place("report", "mesh/MESH=9", code=2).stderr
    diff = place("diff", "latest/MESH=8x1", "latest/MESH=4x2").stdout
    sides = [line.split("  ")[0] for line in diff.splitlines() if line[:2] in ("- ", "+ ")]
    assert sides[:2] == ["- MESH=8x1", "+ MESH=4x2"] and "step" in diff
    sides = json.loads(place("diff", "latest", "latest/MESH=4x2", "--format", "json").stdout)
    assert sides["before"]["settings"] == {"MESH": "8x1"} and sides["after"]["settings"] == {"MESH": "4x2"}
    listed = place("runs").stdout.splitlines()
    assert [line.split()[0] for line in listed[2:]] == ["/MESH=4x2", "/MESH=3x3"]


def test_the_figures_are_data_too(place):
    data = json.loads(place("report", "--format", "json").stdout)
    assert data["run"]["settings"] == {"MESH": "8x1"}
    assert [inner["run"]["settings"]["MESH"] for inner in data["sub_runs"]] == ["4x2", "3x3"]
    (found,) = [c for c in data["comparisons"] if c["function"].startswith("step@")]
    one, two = found["columns"]
    assert (one["sub_run"], two["sub_run"]) == (None, 0) and one["target"] is None and one["bounds"] is None
    assert {"data"} == {axis for over in one["collectives"] for axis in over["axes"]}
    programs = {p["id"]: p for p in data["sub_runs"][0]["programs"]}
    assert sum(over["count"] for over in two["collectives"]) == len(programs[two["program"]]["collectives"])


def test_a_run_within_can_be_removed_by_its_whole_name(place):
    name = place("runs").stdout.splitlines()[1].split()[0]
    place("runs", "rm", f"{name}/MESH", code=2)
    place("runs", "rm", f"{name}/MESH=3x3")
    assert "3x3" not in place("runs").stdout


ODD_BATCH = """
import sys
import jax, numpy as np

@jax.jit
def step(x):
    return x.sum()

for size in (64, 29) if "--batch=odd" in sys.argv else (64,):
    step(np.ones(size, "f4"))
"""


def test_a_check_looks_at_every_setting_and_says_which_one_a_finding_is_of(place, tmp_path):
    (tmp_path / "odd.py").write_text(ODD_BATCH)
    where, program = str(tmp_path / "odd"), str(tmp_path / "odd.py")
    words = ("run", "-q", "--out", where, "--vary", "--batch=even,odd", "--check")
    err = place(*words, "max-compilations=1", program, code=3).stderr
    said = " ".join(err.split())
    assert "your functions were compiled 2 times, 1 allowed" in said
    assert said.count("(with --batch=odd)") == 1 and "--batch=even)" not in said
    found = json.loads(place("check", where, "--output-format", "json", code=1).stdout)["findings"]
    assert [(f["code"], f["settings"]) for f in found] == [("JX101", ["--batch=odd"])]
    report = json.loads(place("report", where, "--format", "json").stdout)
    (f,) = report["findings"]
    assert (f["code"], f["settings"], f["sub_run"]) == ("JX101", ["--batch=odd"], 0)
    compilation = f["evidence"][0]["compilation"]
    assert compilation in [c["id"] for c in report["sub_runs"][f["sub_run"]]["compilations"]]
    page = " ".join(place("report", where).stdout.split())
    assert "Findings" in page and "(with" in page and "--batch=odd)" in page
    assert "with --batch" not in place("check", f"{where}/--batch=odd", code=1).stdout  # one alone
