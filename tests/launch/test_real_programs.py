"""``jaxscope run`` in front of real programs: what is recorded is what JAX's own log counts."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jaxscope.log import reader, store
from jaxscope.schema import events as ev

pytestmark = [pytest.mark.capture, pytest.mark.costly]

PROGRAMS = Path(__file__).parents[1] / "programs"


def run(tmp_path, env, *words):
    where = tmp_path / "recorded"
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--out", str(where), *words],
        env=env,
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done, list(reader.read(store.RunDir(where)))


def modules(events, kind):
    return Counter(e.module.removeprefix("jit(").removesuffix(")") for e in events if isinstance(e, kind))


@pytest.mark.long
def test_a_module_run_with_m_is_recorded_whole(tmp_path, clean_env):
    env = {**clean_env, "PYTHONPATH": str(PROGRAMS)}
    out = tmp_path / "counts.json"
    subprocess.run(
        [sys.executable, str(PROGRAMS / "counting.py"), str(out), "-m", "package_main"],
        env=env,
        cwd=PROGRAMS,
        check=True,
        capture_output=True,
    )
    theirs = json.loads(out.read_text())
    plain = subprocess.run(
        [sys.executable, "-m", "package_main"], env=env, cwd=PROGRAMS, capture_output=True, text=True
    )
    done, events = run(tmp_path, env, "-m", "package_main")
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    assert modules(events, ev.Compiled) == {
        k: v["compilations"] for k, v in theirs.items() if v["compilations"]
    }
    assert modules(events, ev.Lowered) == {k: v["lowerings"] for k, v in theirs.items() if v["lowerings"]}
    (users,) = ({e.file for e in events if isinstance(e, ev.FunctionSeen) and not e.library and not e.eager},)
    assert {Path(f).parent for f in users} == {PROGRAMS / "package_main"}


@pytest.mark.long
@pytest.mark.parametrize("program", ["multiprocess_spawn", "multiprocess_fork"])
def test_children_of_multiprocessing_are_followed(program, tmp_path, clean_env):
    plain = subprocess.run(
        [sys.executable, str(PROGRAMS / f"{program}.py")], env=clean_env, capture_output=True, text=True
    )
    done, events = run(tmp_path, clean_env, str(PROGRAMS / f"{program}.py"))
    assert done.stdout == plain.stdout
    starts = {e.pid: e.how for e in events if isinstance(e, ev.RunStarted)}
    users = {e.function for e in events if isinstance(e, ev.FunctionSeen) and not e.library and not e.eager}
    compiled_in = {e.pid for e in events if isinstance(e, ev.Missed) and e.function in users}
    children = {pid for pid, how in starts.items() if how != "run"}
    assert len(children) == 2 and children <= compiled_in, starts
    assert set(starts.values()) - {"run"} == {"fork" if program.endswith("fork") else "child"}


LATE = """
import atexit
@atexit.register
def last():
    import jax
    print(jax.jit(lambda x: x * 3)(2.0), flush=True)
import jax
def first(): print(jax.jit(lambda x: x * 2)(2.0), flush=True)
atexit.register(first)
"""


@pytest.mark.parametrize("way", ["run", "JAXSCOPE=record"])
def test_what_exit_handlers_compile_is_recorded_whenever_they_were_registered(way, tmp_path, clean_env):
    program = tmp_path / "late.py"
    if way == "run":
        program.write_text(LATE)
        done, events = run(tmp_path, clean_env, str(program))
    else:
        program.write_text("import jaxscope\n" + LATE)
        done = subprocess.run(
            [sys.executable, str(program)],
            env={**clean_env, "JAXSCOPE": "record", "JAXSCOPE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        (directory,) = store.all_runs(tmp_path / "runs")
        events = list(reader.read(directory))
    assert done.stdout == "4.0\n6.0\n" and done.returncode == 0
    assert modules(events, ev.Compiled)["<lambda>"] == 2, "also after JAX's own handler let its clients go"
    assert isinstance(events[-1], (ev.RunEnded, ev.ProgramExited))
    assert [e.how for e in events if isinstance(e, ev.RunEnded)] == ["exit"]
