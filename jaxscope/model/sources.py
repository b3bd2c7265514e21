"""Read the user's source files, if they are available: a run may be read on another machine, or much
later."""

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
    """Return a function that reads a file: ``text`` with the checksums that ``run`` recorded, or its cell."""
    return lambda file: _text(run, file)


def _text(run: Run, file: str) -> str | None:
    cell = run.cells.get(file)
    return cell if cell is not None else text(file, run.sources.get(file, frozenset()))


@functools.lru_cache(64)
def text(file: str, recorded: frozenset[str] = frozenset()) -> str | None:
    """Return the text of ``file``; None if it does not exist or must not be shown.

    The file name comes from the run, which somebody may have written to make a CI log show another file. So
    a file is read only if it is a Python file below the project, or if its content has one of the checksums
    ``recorded``: then the author of the run already has the file.
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
    """Return whether ``path`` is a Python file below the project, in no hidden directory, with links
    resolved."""
    root, target = _root(here.resolve()), path.resolve()
    if not target.is_relative_to(root) or target.suffix != ".py":
        return False
    return not any(part.startswith(".") for part in target.relative_to(root).parts)


def _root(here: Path) -> Path:
    """Return the nearest directory from ``here`` upwards with a pyproject.toml or .git, below the home
    directory.

    Returns ``here`` if there is none.
    """
    home = Path.home().resolve()
    for folder in (here, *here.parents):
        if folder == home or folder == folder.parent:
            break
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder
    return here


def where_defined(run: Run, file: str, name: str, begins: int) -> Maker | None:
    """Return ``Makers.where_defined`` of a file, which is parsed once; None if it cannot be read."""
    source = _text(run, file)
    return None if source is None else _makers(source).where_defined(name, begins)


def where_called(run: Run, file: str, name: str, site: int) -> Maker | None:
    """Return ``Makers.where_called`` of a file, which is parsed once; None if it cannot be read."""
    source = _text(run, file)
    return None if source is None else _makers(source).where_called(name, site)


@functools.lru_cache(64)
def _makers(source: str) -> rewrap_site.Makers:
    return rewrap_site.Makers(source)
