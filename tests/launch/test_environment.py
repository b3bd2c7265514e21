"""``JAXSCOPE=record`` under plain python, in a program that imports jaxscope."""

import os
import subprocess
import sys
import time

import pytest

from jaxscope.log import reader, store
from jaxscope.schema import events as ev

pytestmark = [pytest.mark.capture, pytest.mark.costly]

PROGRAM = """
import os, sys, jaxscope
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"  # before jax, after jaxscope
import jax, jax.numpy as jnp
f = jax.jit(lambda x: x * 2)
for i in range(3): f(jnp.ones(i + 1))
try: os.wait(); print("an unknown child")
except ChildProcessError: pass
print(len(jax.devices()), [type(f).__name__ for f in sys.meta_path if "Jax" in type(f).__name__])
"""


def go(tmp_path, env, mode, program=PROGRAM):
    path = tmp_path / "program.py"
    path.write_text(program)
    return subprocess.run(
        [sys.executable, str(path)],
        env={**env, "JAXSCOPE": mode},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_recording_starts_when_jax_is_imported_and_not_before(tmp_path, clean_env):
    done = go(tmp_path, clean_env, "record")
    assert (done.returncode, done.stdout) == (0, "3 []\n"), done.stderr
    (run,) = store.all_runs(tmp_path / ".jaxscope" / "runs")
    events = list(reader.read(run))
    assert sum(isinstance(e, ev.Compiled) for e in events) >= 3
    assert isinstance(events[0], ev.RunStarted) and events[0].how == "env"
    assert f"recording to {run.path}" in done.stderr


def test_live_prints_a_line_for_each_recompile_and_ends_with_the_program(tmp_path, clean_env):
    program = PROGRAM + "import time; time.sleep(1.5)\n"
    done = go(tmp_path, clean_env, "live", program)
    assert done.stdout == "3 []\n"
    lines = [line for line in done.stderr.splitlines() if "#" in line]
    assert [line.partition("(")[0] for line in lines] == ["jaxscope: <lambda> #2 ", "jaxscope: <lambda> #3 "]
    time.sleep(1)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(tmp_path) not in "".join(line for line in left.splitlines() if "_follow" in line)


def test_a_program_that_never_imports_jax_leaves_nothing_behind(tmp_path, clean_env):
    done = go(tmp_path, clean_env, "record", "import jaxscope; print('done')")
    assert (done.stdout, done.stderr) == ("done\n", "") and not (tmp_path / ".jaxscope").exists()


def test_a_wrong_word_is_named_and_the_program_runs(tmp_path, clean_env):
    done = go(tmp_path, clean_env, "recrod", "import jaxscope; print('done')")
    assert done.stdout == "done\n" and "recrod is not one of record, live" in done.stderr


def test_our_own_commands_do_not_record_themselves(tmp_path, clean_env):
    subprocess.run(
        [sys.executable, "-m", "jaxscope", "doctor"],
        env={**clean_env, "JAXSCOPE": "record"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert not (tmp_path / ".jaxscope").exists()
    assert os.environ.get("JAXSCOPE") is None
