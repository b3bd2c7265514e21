"""``jaxscope run`` in a terminal: what becomes of the program, its output and its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
import time

import handwritten_runs
import pytest
from terminal import PATIENCE_S, Terminal

from jaxscope.log import store

PROGRAM = """
import signal, sys, time
def end(*_):
    print("saving before the end", flush=True)
    sys.exit(7)
signal.signal(signal.SIGINT, end)
print("begun, a terminal:", sys.stdout.isatty(), flush=True)
for n in range(600):
    time.sleep(0.1)
"""


@pytest.fixture
def terminal(tmp_path, clean_env):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**clean_env, "TERM": "xterm-256color", "JAXSCOPE_HOME": str(tmp_path / "home")}
    for name in ("NO_COLOR", "CI", "JPY_PARENT_PID", "COLUMNS", "LINES"):
        env.pop(name, None)
    started = []

    def start(*words: str, size: tuple[int, int] = (120, 40), **more: str) -> Terminal:
        found = Terminal([sys.executable, "-m", "jaxscope", *words], tmp_path, {**env, **more}, size)
        started.append(found)
        return found

    start.home = tmp_path / "home" / "runs"
    yield start
    for each in started:
        os.close(each.fd)
    for run in store.all_runs(start.home):  # a program that was left running
        keeper = run.path / "keeper.json"
        if keeper.exists():
            try:
                os.killpg(json.loads(keeper.read_text())["program"], signal.SIGKILL)
            except OSError:
                pass


def test_stopping_in_the_view_gives_the_program_its_say_and_its_exit_code(terminal):
    t = terminal("run", "program.py")
    t.wait_for("running")
    t.press("7")
    t.wait_for("begun, a terminal: True")
    t.press("q")
    t.wait_for("still running")
    t.press("s")
    t.wait_for("SIGINT sent")
    assert t.code() == 7
    (run,) = store.all_runs(terminal.home)
    assert "saving before the end" in run.output.read_text()


def test_a_program_that_reads_its_input_behind_the_view_is_to_be_run_without_it(terminal, tmp_path):
    (tmp_path / "asks.py").write_text("input('name? ')")
    t = terminal("run", "asks.py")
    t.wait_for("EOFError")
    t.press("q")
    t.wait_for("has no stdin while the view is open")
    t.wait_for("jaxscope run --no-tui")
    assert t.code() == 1


def test_detaching_leaves_the_program_running_and_view_shows_it_again(terminal):
    t = terminal("run", "--tui", "program.py")
    t.wait_for("running")
    t.press("q")
    t.wait_for("still running")
    t.press("d")
    t.wait_for("jaxscope view program-")
    assert t.code() == 0
    again = terminal("view")
    again.wait_for("running")
    again.press("q")  # somebody else's program: nothing is asked
    assert again.code() == 0
    (run,) = store.all_runs(terminal.home)
    assert time.time() - run.heartbeat.stat().st_mtime < 30


def echoes(t: Terminal) -> bool:
    """Does the terminal show what is typed, as a shell wants it?"""
    return bool(termios.tcgetattr(t.fd)[3] & termios.ECHO)


@pytest.mark.long
def test_sigterm_gives_the_terminal_back_and_leaves_the_program_running(terminal, tmp_path):
    (tmp_path / "counts.py").write_text(
        "import time\nfor n in range(40):\n    print('count', n, flush=True); time.sleep(0.1)\nraise SystemExit(5)"
    )
    t = terminal("run", "--tui", "counts.py")
    t.wait_for("running")
    assert not echoes(t)
    os.kill(t.pid, signal.SIGTERM)
    t.wait_for("keeps running without this terminal", "jaxscope view counts-")
    assert "[1 Overview]" not in t.screen.text and echoes(t)
    assert t.code() == 128 + signal.SIGTERM
    again = terminal("view")
    again.wait_for("exit code 5")
    (run,) = store.all_runs(terminal.home)
    assert run.output.read_text().split() == [w for n in range(40) for w in ("count", str(n))]
    os.kill(again.pid, signal.SIGTERM)
    assert again.code() == 128 + signal.SIGTERM and echoes(again)


def test_a_view_that_hears_no_hangup_ends_with_its_terminal(terminal, tmp_path, clean_env):
    """Under nohup it would go on reading the end of a connection that is closed."""
    handwritten_runs.training(tmp_path / "run")
    words = f"trap '' HUP; exec '{sys.executable}' -m jaxscope view '{tmp_path / 'run'}'"
    t = Terminal(["sh", "-c", words], tmp_path, {**clean_env, "TERM": "xterm"})
    t.wait_for("[1 Overview]")
    os.close(t.fd)
    until = time.monotonic() + PATIENCE_S
    while not (ended := os.waitpid(t.pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(t.pid, signal.SIGKILL)
            os.waitpid(t.pid, 0)
            pytest.fail("it goes on")
        time.sleep(0.1)
    assert os.waitstatus_to_exitcode(ended[1]) == 128 + signal.SIGTERM


@pytest.mark.parametrize("kind", ["dumb", "unknown", ""])
def test_a_terminal_that_cannot_be_drawn_on_gets_the_text_report(terminal, tmp_path, kind):
    handwritten_runs.training(tmp_path / "run")
    t = terminal("view", str(tmp_path / "run"), TERM=kind)
    t.wait_for("this is the text report", "train.py")
    assert t.code() == 0


@pytest.mark.parametrize("kind", ["xterm", "screen", "linux", "never-heard-of"])
def test_the_view_draws_on_terminals_of_all_names(terminal, tmp_path, kind):
    handwritten_runs.training(tmp_path / "run")
    t = terminal("view", str(tmp_path / "run"), size=(80, 24), TERM=kind, LANG="C", LC_ALL="C")
    t.wait_for("[1 Overview]", "✓ exit code 0")
    t.press("2")
    t.wait_for("[2 Functions]")
    t.press("q")
    assert t.code() == 0 and echoes(t)


def test_glyphs_are_drawn_whatever_python_takes_the_terminals_encoding_for(terminal, tmp_path):
    handwritten_runs.training(tmp_path / "run")
    t = terminal("view", str(tmp_path / "run"), PYTHONIOENCODING="ascii")
    t.wait_for("[1 Overview]", "✓ exit code 0")
    assert "\\u2" not in t.screen.text
    t.press("q")
    assert t.code() == 0


def test_a_program_that_ends_by_itself_leaves_its_exit_code_when_the_view_is_left(terminal, tmp_path):
    (tmp_path / "short.py").write_text("print('done'); raise SystemExit(3)")
    t = terminal("run", "--tui", "short.py")
    t.wait_for("exit code 3")
    t.press("q")
    assert t.code() == 3


def test_without_a_terminal_the_program_runs_as_without_the_option(tmp_path, clean_env):
    (tmp_path / "short.py").write_text("print('done'); raise SystemExit(3)")
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "--tui", "-q", "short.py"],
        cwd=tmp_path, env=clean_env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout == "done\n"
    assert "runs without it" in done.stderr


def test_view_without_a_terminal_prints_the_report(tmp_path, clean_env):
    handwritten_runs.training(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "view", str(tmp_path / "run")],
        cwd=tmp_path, env=clean_env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0
    assert "train_step" in done.stdout
    assert "no terminal" in done.stderr


def test_no_tui_leaves_the_program_the_terminal(terminal, tmp_path):
    (tmp_path / "asks.py").write_text("print('it is', input('name? ')[::-1])")
    t = terminal("run", "-q", "--no-tui", "asks.py")
    t.wait_for("name?")
    t.press("abc\r")
    t.wait_for("it is cba")
    assert t.code() == 0


@pytest.mark.parametrize("how", ["pyproject", "live", "dumb", "CI", "notebook"])
def test_the_view_stays_away_where_it_is_not_wanted(terminal, tmp_path, how):
    (tmp_path / "short.py").write_text("print('my own terminal'); raise SystemExit(3)")
    if how == "pyproject":
        (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.run]\ntui = false\n")
    words = ["--live"] if how == "live" else []
    more = {"dumb": {"TERM": "dumb"}, "CI": {"CI": "true"}, "notebook": {"JPY_PARENT_PID": "1"}}.get(how, {})
    t = terminal("run", "-q", *words, "short.py", **more)
    t.wait_for("my own terminal")
    assert t.code() == 3


def test_a_view_that_fails_leaves_the_programs_output_summary_and_code(terminal, tmp_path):
    (tmp_path / "short.py").write_text(
        "import time\nfor n in range(30): print('line', n, flush=True); time.sleep(0.1)\nraise SystemExit(5)"
    )
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.abc, sys\n"
        "class Broken(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'jaxscope.tui.screens.overview': raise RuntimeError('no screens today')\n"
        "sys.meta_path.insert(0, Broken())\n"
    )
    t = terminal("run", "short.py", PYTHONPATH=str(tmp_path))
    t.wait_for("no screens today", "the program continues; its output follows", "line 3")
    t.wait_for("line 29", "the program's output:")
    assert t.code() == 5


@pytest.mark.long
def test_a_view_that_fails_while_it_shows_something_leaves_the_programs_code(terminal, tmp_path):
    (tmp_path / "short.py").write_text(
        "import time\nprint('begun', flush=True); time.sleep(4); raise SystemExit(5)"
    )
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "def breaks():\n"
        "    while 'jaxscope.tui.app' not in sys.modules or not hasattr(sys.modules['jaxscope.tui.app'], 'App'): time.sleep(0.01)\n"
        "    def fails(self): raise RuntimeError('drawn wrongly')\n"
        "    sys.modules['jaxscope.tui.app'].App._tick = fails\n"
        "if sys.argv[0] == '-m': threading.Thread(target=breaks, daemon=True).start()\n"
    )
    t = terminal("run", "short.py", PYTHONPATH=str(tmp_path))
    t.wait_for("the program continues; its output follows", "begun")
    assert t.code() == 5


@pytest.mark.parametrize("ahead", ["see", "s?", "sd"])
def test_what_is_typed_ahead_of_the_end_of_the_view_does_not_lose_the_stop_that_was_requested(
    terminal, ahead
):
    t = terminal("run", "program.py")
    t.press("7")
    t.wait_for("begun, a terminal: True")
    t.press("q")
    t.wait_for("still running")
    t.press(ahead)
    t.wait_for("SIGINT sent")
    assert t.code() == 7
    assert "Traceback" not in t.screen.text and "internal error" not in t.screen.text


def test_a_view_that_fails_after_a_stop_was_requested_stops_the_program_all_the_same(terminal, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "def breaks():\n"
        "    while 'jaxscope.tui.app' not in sys.modules or not hasattr(sys.modules['jaxscope.tui.app'], 'App'): time.sleep(0.01)\n"
        "    def fails(self): raise RuntimeError('closed wrongly')\n"
        "    sys.modules['jaxscope.tui.app'].App.on_unmount = fails\n"
        "if sys.argv[0] == '-m': threading.Thread(target=breaks, daemon=True).start()\n"
    )
    t = terminal("run", "program.py", PYTHONPATH=str(tmp_path))
    t.press("7")
    t.wait_for("begun, a terminal: True")
    t.press("q")
    t.wait_for("still running")
    t.press("s")
    t.wait_for("closed wrongly", "SIGINT sent")
    assert t.code() == 7


def test_ctrl_c_in_the_view_asks_before_it_leaves_a_program_that_runs(terminal):
    t = terminal("run", "program.py")
    t.press("7")
    t.wait_for("begun, a terminal: True")
    t.press("\x03")
    t.wait_for("still running")
    t.press("s")
    t.wait_for("SIGINT sent")
    assert t.code() == 7


@pytest.mark.parametrize("keys", ["qecho hi\r", "q?", "\x03e"])
def test_a_view_that_is_left_hears_nothing_more_that_was_typed(terminal, tmp_path, keys):
    handwritten_runs.training(tmp_path / "run")
    t = terminal("view", "run")
    t.wait_for("train_step", "q quit")
    t.press(keys)
    assert t.code() == 0
    assert "internal error" not in t.screen.text


TRAINING = """
import os, sys, time
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp, numpy as np
import jaxscope
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"))
weights = {
    "hidden": jax.device_put(jnp.ones((64, 32)), NamedSharding(mesh, P(None, "model"))),
    "out": jax.device_put(jnp.ones((32, 8)), NamedSharding(mesh, P())),
}

@jax.jit
def train_step(weights, x):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w["hidden"]) @ w["out"]) ** 2)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights))

for step in range(1, 7):
    rows = 16 if step < 4 else 8
    x = jax.device_put(np.ones((rows, 64), np.float32), NamedSharding(mesh, P("data")))
    weights = train_step(weights, x)
    jaxscope.step()
    print("step", step, flush=True)
while not os.path.exists("finish"):
    time.sleep(0.1)
print("trained", flush=True)
sys.exit(5)
"""


@pytest.mark.capture
def test_a_training_is_watched_left_and_watched_again_to_its_end(terminal, tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    t = terminal("run", "train.py")
    t.wait_for("● running", "▲ 1 recompile", "train_step")
    t.press("2")
    t.wait_for("[2 Functions]", "Key of #2 compared with the nearest", "≠ x", "f32[16,64]", "f32[8,64]")
    t.press("m")
    t.wait_for("[3 Program]", "train_step #2", "loss", "stablehlo.", "StableHLO operations", "parameter(")
    t.press("5")
    t.wait_for("[5 Arrays]", "weights", "mesh data=4 x model=2", "data 3", " 7 ")
    t.resize(80, 24)
    t.wait_for("[5 Arrays]", "weights", "q quit")
    t.press("q")
    t.wait_for("still running")
    t.press("d")
    t.wait_for("keeps running without this terminal", "jaxscope view train-")
    assert t.code() == 0
    (run,) = store.all_runs(terminal.home)
    again = terminal("view")
    again.wait_for("● running", "▲ 1 recompile")
    (tmp_path / "finish").touch()
    again.wait_for("exit code 5")
    again.press("7")
    again.wait_for("[7 Output]", "step 6", "trained")
    again.press("q")
    assert again.code() == 0
    printed = run.output.read_text().replace("\r\n", "\n")
    assert printed == "".join(f"step {n}\n" for n in range(1, 7)) + "trained\n"
