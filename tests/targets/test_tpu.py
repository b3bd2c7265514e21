"""With libtpu installed: what a run on forced CPU devices gives for a TPU is what compiling for that TPU gives.

Where libtpu is not installed these tests say so and are skipped: pip install 'jaxscope[tpu]'.
"""

import json
import subprocess
import sys
from collections import Counter

import pytest
from beside import FOR_TPUS, HERE, PROGRAM, SAMPLE, directly, made_of

from jaxscope.log import store
from jaxscope.model.load import load

pytestmark = FOR_TPUS


@pytest.mark.parametrize(
    "target, devices", [("v5e:4x4", 16), ("2*v5e:4x4", 32), ("v5p:8x8x8", 512), ("tpu7x:2x2x1", 8)]
)
def test_a_run_on_cpu_devices_gives_the_program_that_compiling_for_the_pod_gives(
    tmp_path, clean_env, target, devices
):
    names = ["train_step", "reduce_rows", "experts", "pipeline", *(["alone"] if devices < 100 else [])]
    where = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--out", str(where), "--target", target, "--wait-targets",
         str(PROGRAM), *names],
        env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    directory = store.RunDir(where)
    run = load(directory)
    ours = {p.function.seen.name: p for p in run.retargeted.values()}
    assert set(ours) == set(names) and {p.state for p in ours.values()} == {"ok"}
    for name, text in directly(target, tmp_path, clean_env, *names).items():
        mine = directory.text(ours[name].texts["hlo"])
        assert made_of(mine, devices) == made_of(text, devices)
        assert "jaxscope" not in mine.replace(str(HERE.parents[1]), "")  # no line of ours beside the user's
    assert {p.of.target for p in ours.values()} == {"cpu"}


@pytest.mark.parametrize("target, devices", [("v5e:4x4", 16), ("2*v5e:4x4", 32), ("v5p:8x8x8", 512)])
def test_the_sharded_sample_is_on_each_pod_what_compiling_its_step_for_it_gives(
    tmp_path, clean_env, target, devices
):
    # XLA's CPU backend has 256 threads: with 512 devices this step's collectives wait for one another for ever (the
    # same without us), so there it ends when the step is lowered.
    dry = ["--dry-run", "--step-function", "train_step"] if devices > 100 else []
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--out", "run", "--target", target, "--wait-targets", *dry,
         str(SAMPLE), "--steps", "1"],
        env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"on {devices} devices" in done.stdout or dry
    directory = store.RunDir(tmp_path / "run")
    found = {p.function.seen.name: p for p in load(directory).retargeted.values()}
    assert {p.state for p in found.values()} == {"ok"}
    theirs = directly(target, tmp_path, clean_env, "sample")["sample"]
    assert made_of(directory.text(found["train_step"].texts["hlo"]), devices) == made_of(theirs, devices)


def test_a_step_for_4096_chips_is_compiled_from_its_shapes(tmp_path, clean_env):
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "compile", f"{PROGRAM}:train_step", "--target", "v5p:16x16x16", "--args",
         "step_and_shapes", "--format", "json", "--out", str(tmp_path / "run")],
        env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["programs"]
    assert found["num_partitions"] == 4096 and found["of"] is None and found["state"] == "ok"
    # `compile` jits a plain function anew, without donation; everything else is the same step.
    program_ = directly("v5p:16x16x16", tmp_path, clean_env, "train_step")["train_step"]
    expected = made_of(program_, 4096)["collectives"]
    mine = Counter(
        (c["kind"], tuple(c["axes"] or "?"), c["bytes"], c["executions"]) for c in found["collectives"]
    )
    assert mine == expected
    assert found["estimated_cycles"] and found["memory"]["fits"] is True


GRIDS = """
import itertools, math
from jaxscope.analysis import machines
from jaxscope.errors import UsageError
from jaxscope.schema.targets import Target
from jaxscope.targets.client import devices_of

tried = 0
for m in machines.MACHINES.values():
    if m.platform != "tpu":
        continue
    for grid in itertools.product((1, 2, 3, 4, 5, 6, 8, 11, 16), repeat=m.axes):
        if math.prod(grid) > min(m.most, 600):
            continue
        name = f"{m.name}:{'x'.join(map(str, grid))}"
        try:
            ours = machines.parse(name)
        except UsageError:
            ours = Target(name, m.name, "tpu", grid, 1, 0)
        try:
            theirs = len(devices_of(ours))
        except Exception:
            theirs = 0
        assert ours.devices == theirs, (name, ours.devices, theirs)
        tried += 1
print(tried)
"""


def test_the_grids_that_are_refused_are_those_that_the_compiler_refuses(tmp_path, clean_env):
    env = clean_env | {"TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", GRIDS], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=280)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 1000


TOO_LARGE = """
import jax, jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P
import jaxscope

mesh = AbstractMesh((4, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
def shape(dims, *spec):
    return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def step(params, x):
    h = jnp.sin(x @ params["up"])
    return h @ params["down"], h

found = jaxscope.compile_for(
    "v5e:4x4", jax.jit(step), {"up": shape((4096, 1 << 16), None, "model"), "down": shape((1 << 16, 4096), "model")},
    shape((1 << 21, 4096), "data"), out="run",
)
print(found.state, found.fits)
found.report()
"""


def test_a_step_that_does_not_fit_says_so_with_the_largest_arguments_by_name(tmp_path, clean_env):
    (tmp_path / "large.py").write_text(TOO_LARGE)
    done = subprocess.run(
        [sys.executable, "large.py"], env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    first, *page = done.stdout.splitlines()
    assert first == "exhausted False"
    text = "\n".join(page)
    assert "does not fit: " in text and " in 15.8 GiB" in text
    assert "8.0 GiB  argument x" in text and "256.0 MiB  argument params['up']" in text


def test_one_target_under_two_meshes_is_two_programs_and_one_table(tmp_path, clean_env):
    words = ["--out", "recorded", "--target", "v5e:4x4", "--vary", "--model=2,8", "--wait-targets", str(SAMPLE), "--steps", "1"]  # fmt: skip
    command = [sys.executable, "-m", "jaxscope"]
    done = subprocess.run([*command, "run", "-q", *words], env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "{'data': 8, 'model': 2}" in done.stdout and "{'data': 2, 'model': 8}" in done.stdout
    report = [*command, "report", "recorded"]
    data = json.loads(
        subprocess.run([*report, "--format", "json"], env=clean_env, cwd=tmp_path, capture_output=True, text=True).stdout
    )  # fmt: skip
    (found,) = [c["columns"] for c in data["comparisons"] if c["function"].startswith("train_step@")]
    assert [c["settings"] for c in found] == [{"--model": "2"}, {"--model": "8"}]
    sent = [{tuple(o["axes"]): o["wire_bytes"] for o in c["collectives"]} for c in found]
    assert sent[0]["data",] > sent[1]["data",] and sent[0]["model",] < sent[1]["model",]
    for column, program in zip(found, (data, data["sub_runs"][0]), strict=True):
        (p,) = [p for p in program["programs"] if p["id"] == column["program"]]
        assert sum(o["count"] for o in column["collectives"]) == len(p["collectives"])
        assert column["bounds"] == p["bounds"] and column["memory"]["used_bytes"] == p["memory"]["used_bytes"]
    text = subprocess.run(report, env=clean_env, cwd=tmp_path, capture_output=True, text=True).stdout
    assert " ◂" in text and "memory of 15.8 GiB" in text


ON_A_PART = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def on(name, devices):
    mesh = Mesh(np.array(devices), ("x",))
    def total(x): return jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)
    total.__name__ = name
    jax.jit(total)(jax.device_put(np.ones((len(devices), 4), "f4"), NamedSharding(mesh, P("x"))))

d = jax.devices()
on("row", d[:4]); on("block", [d[0], d[1], d[4], d[5]]); on("backwards", d[::-1]); on("all_of_them", d)
"""


def test_a_program_on_some_of_the_chips_is_compiled_for_them_or_says_that_they_are_some(tmp_path, clean_env):
    (tmp_path / "part.py").write_text(ON_A_PART)
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--out", "run", "--target", "v5e:4x4", "--wait-targets", "part.py"],
        env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {
        p.module.removeprefix("jit")[1:].rstrip(")"): p
        for p in load(store.RunDir(tmp_path / "run")).retargeted.values()
    }
    assert {n: p.target_lowered.in_order for n, p in found.items()} == {
        "row": True, "block": False, "backwards": False, "all_of_them": True,
    }  # fmt: skip
    assert {n for n, p in found.items() if p.state == "ok"} == {"block", "backwards", "all_of_them"}
    assert found["row"].target_compiled.error.startswith(
        "it runs on 4 of the 16 devices of v5e:4x4, and the compiler"
    )
