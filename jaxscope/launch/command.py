"""Turn the program's words on our command line into the argument list and the environment of a Python
process.

The program gets exactly the arguments, flags and variables that plain python would give it, plus PYTHONPATH
and JAXSCOPE_*. Modules of launch that are loaded before the program starts do not import msgspec, which takes
16 ms of 50.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.errors import UsageError

BOOT = Path(__file__).parent / "boot"


class Command(NamedTuple):
    """The program's words: ``[script, args...]``, ``[-m, module, args...]`` or ``[-c, code, args...]``."""

    words: list[str]

    @property
    def stem(self) -> str:
        """Return the default name of a run."""
        first = self.words[0]
        if first == "-m":
            # `python -m package.train` is about train; `-m package` runs package/__main__.py
            return self.words[1].removesuffix(".__main__").rpartition(".")[2]
        if first in ("-c", "-"):
            return {"-c": "code", "-": "stdin"}[first]
        return Path(first).absolute().stem

    @property
    def runnable(self) -> bool:
        """Return whether Python can start it; otherwise Python prints the error and there is nothing to
        record."""
        first = self.words[0]
        if first in ("-m", "-c", "-"):
            return True
        path = Path(first)
        if path.is_dir():
            return (path / "__main__.py").exists() or (path / "__main__.pyc").exists()
        return path.exists()

    @property
    def argv(self) -> list[str]:
        """Return the whole argument list, the interpreter first."""
        return [sys.executable, *interpreter_flags(), *self.words]

    @property
    def shown(self) -> str:
        """Return the script's name, or ``-m module``, for a message."""
        first = self.words[0]
        return f"-m {self.words[1]}" if first == "-m" else first

    def is_python_itself(self) -> bool:
        """Return whether the words are ``python train.py``, and no script is called ``python``."""
        first = self.words[0]
        return first.startswith("python") and not self.runnable and len(self.words) > 1


def parse(words: list[str]) -> Command:
    """Parse the part of jaxscope's command line that belongs to the program.

    Raises:
      UsageError: there is no program, or ``-m`` or ``-c`` has no argument.
    """
    hint = "for example: jaxscope run train.py --lr 0.1   or   jaxscope run -m package.train"
    if not words:
        raise UsageError("nothing to run", hint=hint, slug="nothing-to-run")
    first = words[0]
    if first[:2] in ("-m", "-c") and len(first) > 2:  # -mpackage, as Python takes it
        words = [first[:2], first[2:], *words[1:]]
    if words[0] in ("-m", "-c") and len(words) < 2:
        what = "a module's name" if words[0] == "-m" else "the code"
        raise UsageError(f"{words[0]} needs {what} after it", hint=hint, slug="nothing-to-run")
    return Command(words)


def interpreter_flags() -> list[str]:
    """Return the flags of our own Python, so that ``python -O -m jaxscope run`` applies them to the
    program."""
    # Private, but what multiprocessing and test.support build their children's command lines with.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    given = {flags[i + 1].partition("=")[0] for i, flag in enumerate(flags[:-1]) if flag == "-X"}
    for name, value in sys._xoptions.items():
        if name not in given and not (name == "dev" and sys.flags.dev_mode):
            flags += ["-X", name if value is True else f"{name}={value}"]
    if getattr(sys.__stdout__, "write_through", False) and not os.environ.get("PYTHONUNBUFFERED"):
        flags.append("-u")  # has no place in sys.flags
    return flags


def ignores_pythonpath() -> str | None:
    """Return the flag that keeps our start-up file out of the program's Python; None if there is none."""
    if sys.flags.isolated:
        return "-I"
    if sys.flags.ignore_environment:
        return "-E"
    return "-S" if sys.flags.no_site else None


def environment(run: Path, options: dict[str, Any], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment with ``more``, and the variables that start a recording in every Python."""
    env = {**os.environ, **(more or {})}
    # An empty PYTHONPATH is unset for Python, but "boot:" would add the current directory to sys.path.
    given = env.get("PYTHONPATH")
    inherited = [p for p in given.split(os.pathsep) if p != str(BOOT)] if given else []
    env["PYTHONPATH"] = os.pathsep.join([str(BOOT), *inherited])
    env["JAXSCOPE_RUN"] = str(run)
    env["JAXSCOPE_OPTIONS"] = json.dumps(options)
    return env
