"""``--profile``: JAX's profiler during some steps of real programs."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from jaxscope import cli
from jaxscope.capture.step_profile import StepProfile, _sums, _union, combined
from jaxscope.cli import options
from jaxscope.errors import UsageError
from jaxscope.model import measured
from jaxscope.recorded_run import open_run

PROGRAM = """\
import jax, jax.numpy as jnp, jaxscope

@jax.jit
def train_step(w, x):
    def body(c, _):
        return jnp.tanh(c @ w), None
    y, _ = jax.lax.scan(body, x, None, length=5)
    return w - 0.1 * y @ w.T

w = x = jnp.ones((64, 64))
STEP
for n in range(8):
    w = train_step(w, x)
    MARK
print(w.shape)
"""
MARKED = PROGRAM.replace("STEP", "").replace("MARK", "jaxscope.step()")
WATCHED = PROGRAM.replace("STEP", "train_step = jaxscope.watch(step=True)(train_step)").replace("MARK", "")


def run(folder, env, program, profile):
    (folder / "p.py").write_text(program)
    words = ["run", "-q", "-o", "r", "--profile", profile, "p.py"]
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0 and done.stdout == "(64, 64)\n" and done.stderr == "", done.stderr
    return open_run(folder / "r")


@pytest.mark.capture
@pytest.mark.parametrize("program", [MARKED, WATCHED], ids=["marked", "watched"])
def test_the_instructions_of_the_steps_are_measured_by_line(program, tmp_path, clean_env):
    found = run(tmp_path, clean_env, program, "steps=3:5")
    [m] = measured.profiles(found)
    assert (m.event.first_step, m.event.last_step, m.devices) == (3, 5, 1)
    # One call in each of three steps: the loop runs once in it, what is in the loop five times.
    counts = {t.name: t.count for t in m.event.instructions if t.module == "jit_train_step"}
    assert {n for name, n in counts.items() if name.startswith("while")} == {3}
    assert set(counts.values()) == {3, 15}
    lines = {s.line.line: s.seconds for s in m.lines if s.line is not None}
    assert {6, 8} <= lines.keys() <= {4, 6, 7, 8} and all(s > 0 for s in lines.values())
    assert m.device_seconds > 0 and m.event.cost_seconds > 0
    assert 0 < m.event.busy_seconds <= m.event.seconds
    profile = tmp_path / "r" / m.event.file
    assert profile.name.endswith(".xplane.pb") and profile.stat().st_size > 1000
    assert cli.command(["runs", "rm", "--yes", str(tmp_path / "r")]) == 0 and not (tmp_path / "r").exists()


@pytest.mark.capture
def test_xprof_opens_the_profile(tmp_path, clean_env):
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data", reason="xprof reads the profile")
    [m] = measured.profiles(run(tmp_path, clean_env, MARKED, "steps=3:5"))
    file = [str(tmp_path / "r" / m.event.file)]
    assert any(tool.startswith("trace_viewer") for tool in convert.xspace_to_tool_names(file))
    shown, _ = convert.xspace_to_tool_data(file, "trace_viewer", {})
    shown = shown if isinstance(shown, str) else shown.decode()
    assert all(t.name in shown for t in m.event.instructions[:3]) and "jit_train_step" in shown


@pytest.mark.capture
def test_a_program_that_ends_earlier_has_the_profile_until_then(tmp_path, clean_env):
    found = run(tmp_path, clean_env, MARKED, "steps=6:50")
    [m] = measured.profiles(found)
    assert m.event.first_step == 6 and m.event.last_step in (8, 9)
    assert max(t.count for t in m.event.instructions if t.name.startswith("while")) == 3


@pytest.mark.capture
def test_a_program_that_ends_before_the_first_step_is_reported(tmp_path, clean_env):
    found = run(tmp_path, clean_env, MARKED, "steps=50")
    assert measured.profiles(found) == [] and not (tmp_path / "r" / "profile").exists()
    [lost] = [e for e in found.degraded if e.seam == "profile"]
    assert lost.reason == "the program ended before step 50"


@pytest.mark.capture
def test_a_profiler_that_the_program_runs_itself_is_left_alone(tmp_path, clean_env):
    program = (
        MARKED.replace("w = x =", "jax.profiler.start_trace('own')\nw = x =") + "jax.profiler.stop_trace()\n"
    )
    found = run(tmp_path, clean_env, program, "steps=3:5")
    assert list((tmp_path / "own").rglob("*.xplane.pb"))
    assert measured.profiles(found) == [] and [e.seam for e in found.degraded] == ["profile"]


@pytest.mark.capture
@pytest.mark.parametrize("fault", ["profile", "profile_read"])
def test_a_profiler_that_fails_changes_nothing_and_is_reported(fault, tmp_path, clean_env):
    found = run(tmp_path, {**clean_env, "JAXSCOPE_FAULTS": fault}, MARKED, "steps=3:5")
    assert [e.seam for e in found.degraded] == [fault]
    files = [m.event.file for m in measured.profiles(found)]  # what was not read is still there for xprof
    assert files == [] if fault == "profile" else (tmp_path / "r" / files[0]).exists()


def test_a_device_is_busy_once_while_it_executes_several_instructions():
    spans = [(0, 10), (2, 4), (8, 12), (20, 21), (12, 13), (20, 21)]
    assert _union(spans) == 14 and _union([]) == 0


def event(name, hlo_op, start, duration):
    stats = [("hlo_op", hlo_op), ("hlo_module", "jit_step"), ("program_id", 7)]
    return SimpleNamespace(name=name, start_ns=start, duration_ns=duration, stats=stats)


def test_kernels_of_a_cuda_graph_are_recorded_by_their_names():
    """As JAX 0.11.2 writes them on an H100."""
    stream = [
        event("loop_add_fusion_2", "command_buffer_1", 0, 5),
        event("loop_add_fusion_2", "command_buffer_1", 9, 6),
        event("fusion_1", "fusion.1", 20, 4),
    ]
    planes = [
        SimpleNamespace(name="/device:GPU:0", lines=[SimpleNamespace(events=stream)]),
        SimpleNamespace(name="/host:CPU", lines=[SimpleNamespace(events=[event("run", "fusion.1", 0, 90)])]),
    ]
    times, devices, busy = _sums(SimpleNamespace(planes=planes))
    found = [(t.name, t.kernel, t.count, t.nanoseconds) for t in times]
    assert found == [("command_buffer_1", "loop_add_fusion_2", 2, 11), ("fusion.1", None, 1, 4)]
    assert devices == 1 and busy == pytest.approx(15e-9)


class Steps:
    """Counts calls; asks for every fourth step."""

    def __init__(self):
        self.calls = []

    def ended(self, step):
        self.calls.append(step)
        return 4


def test_the_end_of_a_step_calls_only_what_asked_for_it(tmp_path, monkeypatch):
    profile, steps, done = StepProfile(tmp_path, 6, 8, None), Steps(), []
    monkeypatch.setattr(profile, "_start", lambda: done.append("start"))
    both = combined(profile.step_ended, steps.ended)
    at = 1
    while at < 40:
        done.append(at)
        at += both(at)
    # From steps 1, 5, 9, ... on, and the ends of steps 5 and 8, between which the profiler runs.
    assert steps.calls == [n for n in done if n != "start" and n != 8] == [*range(1, 40, 4)]
    assert done[done.index("start") - 1] == 5 and 8 in done
    assert (
        combined(None, steps.ended) == steps.ended
        and combined(profile.step_ended, None) == profile.step_ended
    )


@pytest.mark.parametrize("text", ["steps=1:3", "steps=5:4", "steps=", "10:12", "steps=3:x"])
def test_steps_that_cannot_be_profiled_are_refused(text):
    with pytest.raises(UsageError):
        options.parser().parse_args(["--profile", text])
    assert options.parser().parse_args(["--profile", "steps=2"]).profile == (2, 2)


def test_a_profile_is_refused_where_names_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.command(["run", "--profile", "steps=3:4", "--redact", "-c", "open('ran', 'w')"]) == 2
    assert "--redact leaves out" in capsys.readouterr().err and not (tmp_path / "ran").exists()


def test_options_are_read_from_the_environment_of_the_program():
    import msgspec

    from jaxscope.capture.session import Options

    given = json.loads(json.dumps({"profile": [10, 12]}))
    assert msgspec.convert(given, Options, strict=False).profile == (10, 12)
