"""Records programs in processes of their own, for the fixtures of ``tests/conftest.py``."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from jaxscope.log import reader, store
from jaxscope.schema import events as ev


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


def environment() -> dict[str, str]:
    """Return the environment without what a recording around the test suite would set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "XLA_FLAGS"))}
    env["JAX_PLATFORMS"] = "cpu"
    return env


def record(
    folder: Path, number: int, program: str | Path, *args: str, clean_env: dict[str, str],
    env: dict | None = None, timeout: float = 240, check: bool = True, **options,
) -> Recorded:  # fmt: skip
    """Run ``program`` (a text or a file) recorded by ``jaxscope.record``, into ``folder``; ``number`` tells
    its files from those of others there.

    The recording starts before the program's first line and ends with the process.
    """
    if not isinstance(program, Path):
        source = folder / f"program{number}.py"
        source.write_text(textwrap.dedent(program))
        program = source
    where = folder / f"run{number}"
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
