"""Real processes: a program under plain python, the same one under ``jaxscope run``, and what each did."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
from launching import HERE, RUN

from jaxscope.log.reader import read
from jaxscope.log.store import RunDir

# In the place of jaxscope's capture, so that these tests need neither JAX nor its second of import time:
# says in the log that the process recorded, as the real one does.
STUB_SESSION = """
import json, os, pathlib, time
def start_from_environment():
    import jax
    assert jax.whole
    run = pathlib.Path(os.environ["JAXSCOPE_RUN"])
    event = {"kind": "RunStarted", "pid": os.getpid(), "argv": [os.environ["JAXSCOPE_OPTIONS"]]}
    (run / "events" / f"{os.getpid()}-stub.jsonl").write_text(json.dumps(event) + "\\n")
"""


class Place:
    """A directory with programs in it, the runs recorded there, and two ways to start a program."""

    def __init__(self, path, env):
        self.path = path
        self.home = path / "home"
        self.env = {k: v for k, v in env.items() if not k.startswith("PYTHON")}
        self.env["JAXSCOPE_HOME"] = str(self.home)
        self.started = []

    def program(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    def fake_jax(self, folder="."):
        """Beside the programs in ``folder``, where only they find it: a jax, and a recorder for it."""
        self.program(f"{folder}/jax/__init__.py", "import jax.part\nwhole = True\n")
        self.program(f"{folder}/jax/part.py", "")
        self.program(f"{folder}/jaxscope/__init__.py", "")
        self.program(f"{folder}/jaxscope/capture/__init__.py", "")
        self.program(f"{folder}/jaxscope/capture/session.py", STUB_SESSION)

    def start(self, *words, plain=False, env=None, python=(), **popen):
        command = [sys.executable, *python, *([] if plain else RUN[1:]), *map(str, words)]
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        process = subprocess.Popen(
            command,
            cwd=popen.pop("cwd", HERE),
            env={**self.env, **(env or {})},
            text=True,
            process_group=0,
            **popen,
        )
        self.started.append(process)
        return process

    def run(self, *words, input=None, **how):
        """The finished process: ``returncode``, ``stdout``, ``stderr``."""
        if input is not None:
            how["stdin"] = subprocess.PIPE
        process = self.start(*words, **how)
        out, err = process.communicate(input, timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def runs(self):
        return sorted((RunDir(p) for p in self.home.glob("runs/*")), key=lambda run: run.meta["started"])

    @property
    def latest(self):
        return self.runs()[-1]

    def events(self, kind, run=None):
        return [e for e in read(run or self.latest) if type(e).__name__ == kind]

    def clean_up(self):
        for process in self.started:
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


@pytest.fixture
def place(tmp_path, clean_env):
    place = Place(tmp_path, clean_env)
    yield place
    place.clean_up()
    shutil.rmtree(tmp_path, ignore_errors=True)
