"""Fixtures that record real programs in processes of their own."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from jaxscope.log import reader, store
from jaxscope.schema import events as ev

# Under nohup, or in the background of a script, these are ignored, and whatever is started inherits that.
for _name in ("SIGHUP", "SIGINT", "SIGQUIT"):
    if signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(
            getattr(signal, _name), signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL
        )

settings.register_profile("suite", deadline=None)  # machines are shared: no test asserts on a clock
settings.load_profile("suite")

sys.path.insert(0, str(Path(__file__).parent / "analysis"))  # keys written by hand


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests that share a module's fixture go to one worker, which makes it once; all others go wherever there is room.

    xdist 3.8 does not heed ``xdist_group`` under pytest 9.2: the name of the group reaches nobody.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if _shares(config.rootpath / file) else nodeid

    return ByModule(config, log)


@functools.cache
def _shares(file: Path) -> bool:
    text = file.read_text()
    return 'scope="module"' in text or "xdist_group" in text


@dataclass
class Recorded:
    """A finished process and what it said."""

    run: store.RunDir
    code: int
    out: str
    err: str

    @property
    def events(self) -> list:
        return list(reader.read(self.run))

    def of(self, kind: type) -> list:
        return [e for e in self.events if isinstance(e, kind)]

    def functions(self, name: str) -> set[str]:
        return {e.function for e in self.of(ev.FunctionSeen) if name in (e.name, e.qualname)}

    def misses(self, name: str) -> list:
        ids = self.functions(name)
        return [e for e in self.of(ev.Missed) if e.function in ids]

    def for_calls(self, kind: type, calls: list) -> list:
        numbers = {c.call for c in calls}
        return [e for e in self.of(kind) if e.call in numbers]


@pytest.fixture(scope="session")
def clean_env():
    return environment()


@pytest.fixture
def record(tmp_path, clean_env):
    """``record(code)`` or ``record(path)``: run it recorded by ``jaxscope.record`` in a new process.

    The recording starts before the program's first line and ends with the process.
    """
    return recorder(tmp_path, clean_env)


@pytest.fixture(scope="module")
def record_module(tmp_path_factory):
    """The same for a whole module: its tests look at one recording."""
    return recorder(tmp_path_factory.mktemp("recorded"), environment())


def environment() -> dict[str, str]:
    """The environment without what a recording around the test suite would set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "XLA_FLAGS"))}
    env["JAX_PLATFORMS"] = "cpu"
    return env


def recorder(folder: Path, clean_env: dict[str, str]):
    """What the fixture ``record`` gives, writing below ``folder``."""
    count = 0

    def go(
        program, *args: str, env: dict | None = None, timeout: float = 240, check: bool = True, **options
    ) -> Recorded:
        nonlocal count
        count += 1
        if not isinstance(program, Path):
            source = folder / f"program{count}.py"
            source.write_text(textwrap.dedent(program))
            program = source
        where = folder / f"run{count}"
        start = (
            "import sys, runpy, jaxscope\n"
            f"jaxscope.record({str(where)!r}, **{options!r}).start()\n"
            f"sys.argv = {[str(program), *args]!r}\n"
            f"sys.path[0] = {str(program.parent)!r}\n"
            f"runpy.run_path({str(program)!r}, run_name='__main__')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", start],
            env={**clean_env, **(env or {})},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        result = Recorded(store.RunDir(where), done.returncode, done.stdout, done.stderr)
        if check:
            assert done.returncode == 0, done.stderr
            assert not [e for e in result.of(ev.Degraded) if e.seam != "listeners"], result.of(ev.Degraded)
        return result

    return go
