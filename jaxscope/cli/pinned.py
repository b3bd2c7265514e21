"""The baseline of a check: which file it is, and how it is written anew."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxscope.cli import config
from jaxscope.errors import JaxscopeError
from jaxscope.log import store

if TYPE_CHECKING:
    from jaxscope.check.baseline.schema import Baseline
    from jaxscope.check.selection import Filter
    from jaxscope.log.store import RunDir
    from jaxscope.model.run import Run


def path_of(wishes: dict[str, Any]) -> Path | None:
    """The baseline that is asked for, else the one that lies in the project; None: there is none."""
    from jaxscope.check.baseline import file

    if wishes.get("baseline") is not None:
        return Path(wishes["baseline"])
    found = _project() / file.NAME
    return found if found.is_file() else None


def configured(loaded: config.Config, value: str) -> str:
    """A path of pyproject.toml, told from where that lies."""
    return str(loaded.path.parent / value) if loaded.path is not None else value


def update(run: Run, directory: RunDir, wishes: dict[str, Any], chosen: Filter) -> Path:
    """Write the baseline of ``run``; says on stderr where.

    Raises:
      BaselineError: in CI, or the file cannot be read or written.
      JaxscopeError: the run is no whole one: nothing ended well, or nothing was compiled.
    """
    from jaxscope.check.baseline import file, update
    from jaxscope.check.baseline import findings as against
    from jaxscope.model.load import state

    file.permitted(os.environ)
    _whole(run, state(run, directory))
    path = path_of(wishes) or _project() / file.NAME
    old = _before(path) if path.exists() else None
    now = against.read(run, chosen, roots(path)).baseline
    file.write(path, update.updated(old, now), os.environ)
    n = len(now.functions)
    sys.stderr.write(f"{path}: {n:,} {'function' if n == 1 else 'functions'} pinned; commit it\n")
    return path


def _before(path: Path) -> Baseline | None:
    """What is to be overwritten; None of a baseline that cannot be read any more.

    Raises:
      BaselineError: it is no baseline at all.
    """
    from jaxscope.check.baseline import file

    try:
        return file.read(path)
    except file.BaselineError as e:
        if file.looks_like_one(path):
            return None
        raise file.BaselineError(
            f"{path} is no baseline of jaxscope, and is not overwritten: {e.message}",
            hint="name another file with --baseline",
            slug="baseline-foreign",
        ) from e


def _whole(run: Run, how: str) -> None:
    exited = run.exited
    wrong = None
    if how in ("running", "lost"):
        wrong = "is still going on" if how == "running" else "ended without a word"
    elif exited is not None and exited.signal is not None:
        wrong = f"was ended by signal {exited.signal}"
    elif exited is not None and exited.exit_code:
        wrong = f"failed with exit code {exited.exit_code}"
    elif run.stopped:
        wrong = "was not recorded to its end"
    elif not any(f.user and (f.traces or f.compiled) for f in run.functions.values()):
        wrong = "compiled nothing of yours"
    if wrong is not None:
        raise JaxscopeError(
            f"the run {wrong}: no baseline is made of it",
            hint="record one that is good, then: jaxscope check --update-baseline",
            slug="baseline-of-what",
        )


def roots(path: Path) -> list[str]:
    """Where names of files are told from: the directory of the baseline, as it is called and as it really is."""
    folder = path.absolute().parent
    return list(dict.fromkeys([os.path.normpath(folder), str(folder.resolve())]))


def _project() -> Path:
    """Where pyproject.toml lies, else the current directory."""
    found = config.load().path
    return found.parent if found is not None else store.here()
