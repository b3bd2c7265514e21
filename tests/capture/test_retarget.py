"""What a target changes in the program: as many CPU devices, one more lowering each, and nothing else."""

import importlib.util
import json
import subprocess
import sys

import pytest

from jaxscope.log import jobs, reader, store
from jaxscope.schema import events as ev
from jaxscope.targets import client

pytestmark = [pytest.mark.capture, pytest.mark.costly]

PROGRAM = """
import os, sys
{before}
import jax, jax.numpy as jnp, numpy as np
{after}
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("data",))

@jax.jit
def step(w, x):
    h = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(mesh, P("data")))
    return h.sum()

@jax.jit
def speaks(x):
    jax.debug.print("x is {{x}}", x=x)
    return x + 1

x = jax.device_put(np.ones((len(jax.devices()) * 2, 8), "f4"), NamedSharding(mesh, P("data")))
print(float(step(np.ones((8, 8), "f4"), x)), jax.device_count(), jax.process_count())
step(np.ones((8, 8), "f4"), x)
speaks(jnp.float32(1))
{end}
"""


def run(tmp_path, env, *options, before="", after="", end="", target="v5e:4x4", check=0):
    """The program under ``jaxscope run --target``, with a libtpu that is a name only: nothing is compiled by it."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(before=before, after=after, end=end))
    where = tmp_path / "recorded"
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--out", str(where), "--target", target, "--wait-targets",
         *options, str(program)],
        env={**env, "TPU_LIBRARY_PATH": str(tmp_path / "no-such-libtpu.so")},
        cwd=tmp_path, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == check, done.stderr
    return done, list(reader.read(store.RunDir(where))), store.RunDir(where)


def of(events, kind):
    return [e for e in events if isinstance(e, kind)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory, clean_env):
    return run(tmp_path_factory.mktemp("retargeted"), clean_env)


def test_the_script_gets_as_many_devices_as_the_target_has(ran):
    done, events, _ = ran
    assert done.stdout.splitlines()[0].split()[1:] == ["16", "1"]  # a true answer to how many processes
    (wanted,) = of(events, ev.TargetsWanted)
    assert wanted.forced == 16 and wanted.targets[0].name == "v5e:4x4"


def test_each_compiled_function_is_handed_over_once_with_the_line_to_its_own_program(ran):
    _, events, _ = ran
    handed = [e for e in of(events, ev.Retargeted) if e.program]
    by_call = {e.call: e for e in of(events, ev.Lowered)}
    assert handed and {by_call[e.call].program for e in handed} == {e.of for e in handed}
    assert len({e.program for e in handed}) == len(handed)
    (step,) = [e for e in handed if e.module and "step" in e.module]
    assert step.partitions == 16 and step.seconds > 0 and step.program != step.of


def test_what_is_lowered_is_for_the_target_and_names_no_line_of_ours(ran):
    _, events, directory = ran
    (step,) = [e for e in of(events, ev.Retargeted) if e.module and "step" in e.module]
    text = directory.text(step.stablehlo)
    assert '"data"=16' in text and "train.py" in text and "jaxscope" not in text


def test_a_compiler_that_does_not_load_is_the_result_and_the_program_goes_on(ran):
    done, events, directory = ran
    results = of(events, ev.TargetCompiled)
    handed = {e.program for e in of(events, ev.Retargeted) if e.program}
    assert {e.program for e in results} == handed
    if importlib.util.find_spec("libtpu") is not None:  # JAX takes the installed one for a path that is none
        assert {e.outcome for e in results} == {"ok"}
    else:
        assert {e.outcome for e in results} <= {"failed", "crashed"} and all(e.error for e in results)
    assert "x is 1.0" in done.stdout and jobs.Queue(directory).waiting() == []


def test_our_lowering_is_none_of_the_programs(ran):
    """Each recorded phase is one that JAX did for the program."""
    _, events, _ = ran
    handed = {e.call for e in of(events, ev.Retargeted)}
    for call in handed:
        assert sum(e.call == call for e in of(events, ev.Lowered)) == 1
    assert {p for e in of(events, ev.Lowered) for p in e.platforms} == {"cpu"}


@pytest.mark.parametrize(
    "before, after",
    [
        ("os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'", ""),
        ("", "jax.config.update('jax_num_cpu_devices', 4)"),
    ],
)
@pytest.mark.long
def test_what_the_script_says_about_devices_itself_holds(tmp_path, clean_env, before, after):
    done, events, _ = run(tmp_path, clean_env, before=before, after=after)
    assert done.stdout.split()[1] == "4"
    report = subprocess.run(
        [sys.executable, "-m", "jaxscope", "report", str(tmp_path / "recorded")], capture_output=True, text=True, env=clean_env
    )  # fmt: skip
    assert "the script ran on 4 devices" in report.stdout and "v5e:4x4 has 16" in report.stdout
    (step,) = [e for e in of(events, ev.Retargeted) if e.module and "step" in e.module]
    assert step.partitions == 4


def test_what_the_environment_says_about_devices_holds(tmp_path, clean_env):
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done, events, _ = run(tmp_path, env)
    assert done.stdout.split()[1] == "8" and of(events, ev.TargetsWanted)[0].forced is None


def test_more_devices_than_the_target_has_is_a_reason(tmp_path, clean_env):
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    _, events, _ = run(tmp_path, env, target="v5e:2x2")
    (step,) = [
        e for e in of(events, ev.Retargeted) if e.partitions is None and "8 devices" in (e.skipped or "")
    ]
    assert step.program is None and "v5e:2x2 has 4" in step.skipped


def test_exit_codes_and_output_are_the_programs_own(tmp_path, clean_env):
    done, _, _ = run(tmp_path, clean_env, end="sys.exit(7)", check=7)
    assert done.stdout.splitlines()[0].split()[1] == "16"


def test_a_fault_in_our_part_is_reported_and_costs_the_program_nothing(tmp_path, clean_env):
    done, events, _ = run(tmp_path, {**clean_env, "JAXSCOPE_FAULTS": "retarget"})
    assert [e.seam for e in of(events, ev.Degraded) if e.seam == "retarget"] and not of(events, ev.Retargeted)
    assert "x is 1.0" in done.stdout


def test_without_the_compiler_the_command_says_what_to_install(tmp_path, clean_env):
    if importlib.util.find_spec("libtpu") is not None:
        pytest.skip("libtpu is installed here")
    for words in (["run", "--target", "v5e:4x4", "x.py"], ["compile", "m:f", "--target", "v5e:4x4"]):
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", *words],
            env=clean_env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2 and client.install("tpu") in done.stderr


@pytest.mark.long
def test_targets_of_different_sizes_are_runs_of_their_own_within_the_first(tmp_path, clean_env):
    words = ["--target", "v5e:2x2", "--target", "v6e:4x4"]
    done, events, directory = run(tmp_path, clean_env, *words, end="sys.exit(5)", check=5)
    assert [line.split()[1] for line in done.stdout.splitlines() if "." in line and "x is" not in line] == [
        "16",
        "4",
    ]
    assert "2 of 2: on 4 devices for v5e:2x2" in done.stderr
    (sub,) = store.sub_runs(directory)
    theirs = list(reader.read(sub))
    assert [t.name for t in of(events, ev.TargetsWanted)[0].targets] == ["v5e:4x4", "v6e:4x4"]
    assert [t.name for t in of(theirs, ev.TargetsWanted)[0].targets] == ["v5e:2x2"]
    report = [sys.executable, "-m", "jaxscope", "report", str(directory.path)]
    text = subprocess.run(report, capture_output=True, text=True, env=clean_env).stdout
    assert "Compiled for v5e:4x4, v6e:4x4, v5e:2x2" in text
    data = json.loads(
        subprocess.run([*report, "--format", "json"], capture_output=True, text=True, env=clean_env).stdout
    )
    (inner,) = data["sub_runs"]
    assert inner["run"]["exit_code"] == data["run"]["exit_code"] == 5
    assert {p["target"] for p in inner["programs"] if p["of"]} == {"v5e:2x2"}
    (table,) = [c for c in data["comparisons"] if c["function"].startswith("step@")]
    columns = [(c["target"], c["sub_run"]) for c in table["columns"]]
    assert columns == [("v5e:4x4", None), ("v6e:4x4", None), ("v5e:2x2", 0)]


def test_targets_can_be_read_as_data(clean_env):
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "targets", "--format", "json"],
        env=clean_env,
        capture_output=True,
        text=True,
    )
    machines = {m["name"]: m for m in json.loads(done.stdout)["machines"]}
    assert machines["v5e"]["memory_bytes"]["value"] == 16 * 2**30
    assert machines["v3"]["network_bytes_per_second"] is None  # no public page says


def test_a_dry_run_ends_when_the_step_has_been_lowered_and_runs_nothing_of_it(tmp_path, clean_env):
    done, events, _ = run(tmp_path, clean_env, "--dry-run", "--step-function", "step", before="import atexit; atexit.register(lambda: print('bye'))")  # fmt: skip
    assert done.stdout.split() == ["bye"]  # an orderly end: before the first result is printed
    (step,) = [e for e in of(events, ev.Retargeted) if e.module and "step" in e.module]
    assert step.partitions == 16 and not [e for e in of(events, ev.Compiled) if e.call == step.call]
    assert [e.how for e in of(events, ev.RunEnded)] == ["exit"] and not of(events, ev.Died)


def test_a_dry_run_takes_the_watched_step_where_there_is_one(tmp_path, clean_env):
    after = "import jaxscope; jit = jax.jit\njax.jit = lambda f: jaxscope.watch(step=f.__name__ == 'step')(jit(f))"
    done, _, _ = run(tmp_path, clean_env, "--dry-run", after=after)
    assert done.stdout == ""


def test_a_dry_run_without_a_step_says_how_to_name_it(tmp_path, clean_env):
    done, events, _ = run(tmp_path, clean_env, "--dry-run")
    assert done.stdout and [
        e for e in of(events, ev.Degraded) if e.seam == "dry_run" and "--step-function" in e.reason
    ]


ODD = """
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def speaks(xs):
    def body(c, x):
        jax.debug.print("{c}", c=c)
        return c + x, None
    return jax.lax.scan(body, 0.0, xs)

@jax.jit
def asks(x):
    return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((8,), jnp.float32), x)

@jax.jit
def only_here(x):
    return jnp.linalg.eig(x)[0]

speaks(jnp.ones(3)), asks(jnp.ones(8)), only_here(jnp.eye(4))
jax.effects_barrier()
"""


def test_what_no_other_machine_can_run_is_named_with_the_reason(tmp_path, clean_env):
    (tmp_path / "odd.py").write_text(ODD)
    words = ["run", "-q", "--out", "recorded", "--target", "v5e:1x1", "--wait-targets", "odd.py"]
    env = {**clean_env, "TPU_LIBRARY_PATH": str(tmp_path / "none.so")}
    subprocess.run([sys.executable, "-m", "jaxscope", *words], env=env, cwd=tmp_path, check=True, timeout=240)
    events = list(reader.read(store.RunDir(tmp_path / "recorded")))
    names = {e.call: e.function.partition("@")[0] for e in of(events, ev.Missed)}
    skipped = {names[e.call]: e.skipped for e in of(events, ev.Retargeted) if e.skipped}
    assert set(skipped) == {"speaks", "asks", "only_here"}
    assert "calls back into this process (debug_" in skipped["speaks"]  # inside a scan
    assert "calls back into this process (pure_callback)" in skipped["asks"]
    assert (
        "'eig' not found for platform tpu" in skipped["only_here"]
        and "calls back" not in skipped["only_here"]
    )


ABSTRACT = """
import jax, jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P
mesh = AbstractMesh((8, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
rows = NamedSharding(mesh, P("data"))

@jax.jit
def abstract(x):
    return x * 2

abstract.trace(jax.ShapeDtypeStruct((16, 4), jnp.float32, sharding=rows))
"""


def test_shapes_on_a_mesh_without_devices_have_a_key_like_any_other(tmp_path, clean_env):
    (tmp_path / "abstract.py").write_text(ABSTRACT)
    words = ["run", "-q", "--out", "recorded", "abstract.py"]
    subprocess.run([sys.executable, "-m", "jaxscope", *words], env=clean_env, cwd=tmp_path, check=True, timeout=240)  # fmt: skip
    events = list(reader.read(store.RunDir(tmp_path / "recorded")))
    assert "signature" not in {e.seam for e in of(events, ev.Degraded)}
    (key,) = [
        e.key for e in of(events, ev.Missed) if e.function.startswith("abstract@") and e.key is not None
    ]
    (placed,) = key.shardings
    assert placed.text.endswith(" on data=8,model=2") and placed.devices in (None, "")
