"""The user's source files, where they are at hand: a run may be read on another machine, or much later."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxscope.analysis import rewrap_site
from jaxscope.analysis.rewrap_site import Maker
from jaxscope.log import files

if TYPE_CHECKING:
    from jaxscope.model.run import Run

MAX_BYTES = 4_000_000


def of(run: Run) -> Callable[[str], str | None]:
    """``text`` with the checksums that ``run`` recorded."""
    return lambda file: text(file, run.sources.get(file, frozenset()))


@functools.lru_cache(64)
def text(file: str, recorded: frozenset[str] = frozenset()) -> str | None:
    """The text of ``file``; None where there is none, or none that may be shown.

    The name comes from the run, and so perhaps from somebody who wants to see what a CI's log shows of another file. It
    may be a Python file below the project, as it is now; any other file only where its content is the one that was
    ``recorded``: who made the run has seen it.
    """
    try:
        here = Path.cwd()
        path = here / file
        content = files.read(path, MAX_BYTES)
        if not (_of_project(path, here) or hashlib.sha256(content).hexdigest() in recorded):
            return None
    except (OSError, RuntimeError):  # also where there is no current directory; links in a circle
        return None
    return content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _of_project(path: Path, here: Path) -> bool:
    """Does ``path`` lead to a Python file below the project, in no hidden directory?"""
    root, found = _root(here.resolve()), path.resolve()
    if not found.is_relative_to(root) or found.suffix != ".py":
        return False
    return not any(part.startswith(".") for part in found.relative_to(root).parts)


def _root(here: Path) -> Path:
    """The nearest directory at or above ``here`` with a pyproject.toml or .git, below the home directory; else ``here``."""
    home = Path.home().resolve()
    for folder in (here, *here.parents):
        if folder == home or folder == folder.parent:
            break
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder
    return here


def where_defined(file: str, name: str, begins: int, recorded: frozenset[str] = frozenset()) -> Maker | None:
    """``Makers.where_defined`` of a file, which is parsed once; None where it cannot be read."""
    source = text(file, recorded)
    return None if source is None else _makers(source).where_defined(name, begins)


def where_called(file: str, name: str, site: int, recorded: frozenset[str] = frozenset()) -> Maker | None:
    """``Makers.where_called`` of a file, which is parsed once; None where it cannot be read."""
    source = text(file, recorded)
    return None if source is None else _makers(source).where_called(name, site)


@functools.lru_cache(64)
def _makers(source: str) -> rewrap_site.Makers:
    return rewrap_site.Makers(source)
