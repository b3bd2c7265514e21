"""Parse the user's program on the command line of jaxscope, and prepare the Python process that runs it.

``jaxscope run train.py --lr 0.1`` starts ``python train.py --lr 0.1``. The process has the arguments, flags
and environment variables that it would have without jaxscope, plus PYTHONPATH and JAXSCOPE_*. Modules of this
package that are loaded before the program starts do not import msgspec, which takes 16 ms.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.errors import UsageError

BOOT = Path(__file__).parent / "boot"


class Command(NamedTuple):
    """The user's program on the command line of ``jaxscope run``.

    Attributes:
      words: the program and its arguments: ``["train.py", "--lr", "1"]``, ``["-m", "package.train", ...]`` or
        ``["-c", "code", ...]``.
    """

    words: list[str]

    @property
    def stem(self) -> str:
        """Return the default name of the recording: ``train`` for ``train.py`` and for ``-m package.train``,
        ``code`` for ``-c``, ``stdin`` for ``-``."""
        first = self.words[0]
        if first == "-m":
            # `python -m package` runs package/__main__.py
            return self.words[1].removesuffix(".__main__").rpartition(".")[2]
        if first in ("-c", "-"):
            return {"-c": "code", "-": "stdin"}[first]
        return Path(first).absolute().stem

    @property
    def runnable(self) -> bool:
        """Return whether Python can start the program: the script exists, or ``-m``, ``-c`` or ``-`` is
        given. A program that cannot be started is not recorded."""
        first = self.words[0]
        if first in ("-m", "-c", "-"):
            return True
        path = Path(first)
        if path.is_dir():
            return (path / "__main__.py").exists() or (path / "__main__.pyc").exists()
        return path.exists()

    @property
    def argv(self) -> list[str]:
        """Return the argument list of the process: the Python interpreter, its flags, the program's words."""
        return [sys.executable, *interpreter_flags(), *self.words]

    @property
    def shown(self) -> str:
        """Return the program's name for messages: ``train.py``, ``-m package.train``, ``-c`` or ``-``."""
        first = self.words[0]
        return f"-m {self.words[1]}" if first == "-m" else first

    def is_python_itself(self) -> bool:
        """Return whether the user put ``python`` before the script, as in ``jaxscope run python train.py``.
        False if nothing follows ``python``, or if ``python`` is itself the script: an existing file that is
        not executable."""
        first = self.words[0]
        named = re.fullmatch(r"python[\d.]*", Path(first).name) is not None
        return named and (not self.runnable or os.access(first, os.X_OK)) and len(self.words) > 1


def parse(words: list[str]) -> Command:
    """Return the user's program from ``words``, the words after the options of jaxscope: ``["train.py",
    "--lr", "0.1"]``. ``-mpackage`` is split into ``-m`` and ``package``, as Python does.

    Raises:
      UsageError: there is no program, or ``-m`` or ``-c`` has no argument.
    """
    hint = "for example: jaxscope run train.py --lr 0.1   or   jaxscope run -m package.train"
    if not words:
        raise UsageError("nothing to run", hint=hint, slug="nothing-to-run")
    first = words[0]
    if first[:2] in ("-m", "-c") and len(first) > 2:  # -mpackage
        words = [first[:2], first[2:], *words[1:]]
    if words[0] in ("-m", "-c") and len(words) < 2:
        what = "a module's name" if words[0] == "-m" else "the code"
        raise UsageError(f"{words[0]} needs {what} after it", hint=hint, slug="nothing-to-run")
    return Command(words)


def interpreter_flags() -> list[str]:
    """Return the flags with which the Python of this process was started: ``["-O", "-X", "dev"]``. The user's
    program is started with the same flags."""
    # A private function, with which multiprocessing builds the command lines of its child processes.
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    given = {flags[i + 1].partition("=")[0] for i, flag in enumerate(flags[:-1]) if flag == "-X"}
    for name, value in sys._xoptions.items():
        if name not in given and not (name == "dev" and sys.flags.dev_mode):
            flags += ["-X", name if value is True else f"{name}={value}"]
    if getattr(sys.__stdout__, "write_through", False) and not os.environ.get("PYTHONUNBUFFERED"):
        flags.append("-u")  # sys.flags does not have it
    return flags


def ignores_pythonpath() -> str | None:
    """Return ``-I``, ``-E`` or ``-S`` if this Python was started with one of these flags, else None. The
    program is started with the same flag, and then it cannot be recorded."""
    # With such a flag, Python does not run jaxscope's start-up file sitecustomize.py, which it would find by
    # PYTHONPATH.
    if sys.flags.isolated:
        return "-I"
    if sys.flags.ignore_environment:
        return "-E"
    return "-S" if sys.flags.no_site else None


def environment(run: Path, options: dict[str, Any], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables for the user's program: the variables of this process, and the
    variables that make each Python process of the program record itself.

    Args:
      run: the run directory, into which the processes record (JAXSCOPE_RUN).
      options: the options of the recording, as JSON values (JAXSCOPE_OPTIONS).
      more: further environment variables; None: there are none.
    """
    env = {**os.environ, **(more or {})}
    # Python ignores an empty PYTHONPATH, but "boot:" would add the current directory to sys.path.
    given = env.get("PYTHONPATH")
    inherited = [p for p in given.split(os.pathsep) if p != str(BOOT)] if given else []
    env["PYTHONPATH"] = os.pathsep.join([str(BOOT), *inherited])
    env["JAXSCOPE_RUN"] = str(run)
    env["JAXSCOPE_OPTIONS"] = json.dumps(options)
    return env
