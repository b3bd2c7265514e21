"""``jaxscope run --tui`` in a pseudo-terminal: what becomes of the program, its output and its exit code."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

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


class Terminal:
    """A pseudo-terminal with a command in it, driven as a person would."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], command, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.seen = ""

    def wait_for(self, text: str, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < until, f"{text!r} never appeared in {self.seen[-3000:]!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:  # it has ended
                    data = b""
                assert data or text in self.seen, f"it ended without {text!r}: {self.seen[-3000:]!r}"
                self.seen += re.sub(
                    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|.)", "", data.decode("utf-8", "replace")
                )

    def press(self, keys: str) -> None:
        self.seen = ""
        os.write(self.fd, keys.encode())

    def code(self) -> int:
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal(tmp_path, clean_env):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**clean_env, "TERM": "xterm-256color", "JAXSCOPE_HOME": str(tmp_path / "home")}
    env.pop("NO_COLOR", None)
    started = []

    def start(*words: str) -> Terminal:
        found = Terminal([sys.executable, "-m", "jaxscope", *words], tmp_path, env)
        started.append(found)
        return found

    start.home = tmp_path / "home" / "runs"
    yield start
    for each in started:
        os.close(each.fd)
    for run in store.all_runs(start.home):  # a program that was left running
        keeper = run.path / "keeper.json"
        if keeper.exists():
            import json

            try:
                os.killpg(json.loads(keeper.read_text())["program"], signal.SIGKILL)
            except OSError:
                pass


def test_stopping_in_the_view_gives_the_program_its_say_and_its_exit_code(terminal):
    t = terminal("run", "--tui", "program.py")
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


def test_a_program_that_ends_by_itself_leaves_its_exit_code_when_the_view_is_left(terminal, tmp_path):
    (tmp_path / "short.py").write_text("print('done'); raise SystemExit(3)")
    t = terminal("run", "--tui", "short.py")
    t.wait_for("exit code 3")
    t.press("q")
    assert t.code() == 3


def test_without_a_terminal_the_program_runs_as_without_the_option(tmp_path, clean_env):
    import subprocess

    (tmp_path / "short.py").write_text("print('done'); raise SystemExit(3)")
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "--tui", "-q", "short.py"],
        cwd=tmp_path, env=clean_env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout == "done\n"
    assert "without --tui" in done.stderr


def test_view_without_a_terminal_prints_the_report(tmp_path, clean_env):
    import subprocess

    sys.path.insert(0, str(Path(__file__).parents[1] / "log"))
    from written import training

    training(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "view", str(tmp_path / "run")],
        cwd=tmp_path, env=clean_env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0
    assert "train_step" in done.stdout
    assert "no terminal" in done.stderr
