"""Write a baseline file (figures that later runs are compared with) from a run."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from jaxscope.check.baseline import file
from jaxscope.check.baseline.comparison import extract_run
from jaxscope.check.baseline.schema import Baseline
from jaxscope.check.selection import Filter
from jaxscope.errors import JaxscopeError
from jaxscope.model.run import Run


def update(path: Path, run: Run, state: str, chosen: Filter) -> int:
    """Write the figures of ``run`` to the baseline file ``path``. Return the number of functions in the file.
    ``state`` is the state of the run (``exited``, ``stopped``, ``running`` or ``lost``). ``chosen`` removes
    findings that comments or options exclude. The tolerances of an existing file are kept, unless the
    file is damaged.

    Raises:
      BaselineError: the environment variable CI forbids to write (``file.permitted``), or ``path`` cannot
        be written, or exists and is no baseline.
      JaxscopeError: the run failed, is not complete, or compiled none of the user's functions.
    """
    file.permitted(os.environ)
    _require_complete(run, state)
    old = _previous(path) if path.exists() else None
    now = extract_run(run, chosen, roots(path)).baseline
    file.write(path, updated(old, now), os.environ)
    return len(now.functions)


def updated(old: Baseline | None, now: Baseline) -> Baseline:
    """Return the new baseline ``now`` with the tolerances of ``old``, which it replaces (None: there is no
    old one)."""
    if old is None:
        return now
    return msgspec.structs.replace(now, tolerance={**now.tolerance, **old.tolerance})


def _previous(path: Path) -> Baseline | None:
    """Return the existing baseline at ``path``; None if it is damaged, so that it may be overwritten.

    Raises:
      BaselineError: the file is not a baseline, so that it must not be overwritten.
    """
    try:
        return file.read(path)
    except file.BaselineError as e:
        if file.looks_like_one(path):
            return None
        raise file.BaselineError(
            f"{path} is not a baseline of jaxscope, and is not overwritten: {e.message}",
            hint="name another file with --baseline",
            slug="baseline-foreign",
        ) from e


def _require_complete(run: Run, state: str) -> None:
    exited = run.exited
    wrong = None
    if state in ("running", "lost"):
        wrong = "is not finished" if state == "running" else "has no end in its log"
    elif exited is not None and exited.signal is not None:
        wrong = f"was ended by signal {exited.signal}"
    elif exited is not None and exited.exit_code:
        wrong = f"failed with exit code {exited.exit_code}"
    elif run.stopped:
        wrong = "was not recorded to its end"
    elif not any(f.user and (f.traces or f.compiled) for f in run.functions.values()):
        wrong = "compiled none of your functions"
    if wrong is not None:
        raise JaxscopeError(
            f"no baseline is written: the run {wrong}",
            hint="record a complete run, then: jaxscope check --update-baseline",
            slug="baseline-of-what",
        )


def roots(path: Path) -> list[str]:
    """Return the directory of the baseline file ``path``, to which file names in the baseline are relative.
    If it is reached through a symbolic link, the list has both its given and its resolved name."""
    folder = path.absolute().parent
    return list(dict.fromkeys([os.path.normpath(folder), str(folder.resolve())]))
