"""Read the user's source files to show lines of them and to analyze them.

A file may be missing or changed, because a run may be read on another machine or much later. A run therefore
has copies of the files, unless it was recorded with ``--redact``.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxscope.analysis import rewrap_site
from jaxscope.analysis.rewrap_site import Maker
from jaxscope.log import files
from jaxscope.schema.keys import Frame

if TYPE_CHECKING:
    from jaxscope.model.run import Run

MAX_BYTES = 4_000_000  # a larger source file is not read


def of(run: Run) -> Callable[[str], str | None]:
    """Return a function that takes the name of a source file or notebook cell of ``run`` and returns its text
    as it was when the run was recorded, or, if the run has no copy, as it is now. The function returns None
    if the text cannot be shown (see ``text``)."""
    return lambda file: _text(run, file)


def _text(run: Run, file: str) -> str | None:
    """Return the text of ``file``, a file or notebook cell of ``run``, as it was when the run was recorded.
    If the run has no copy of the file, or several that differ, return the present text. None if that cannot
    be shown."""
    copies = run.copies.get(file, frozenset())
    if len(copies) == 1 and (copy := run.stored(next(iter(copies)))) is not None:
        return _lines_ended(copy)
    return _present(run, file)


def now(run: Run) -> Callable[[str], str | None]:
    """Return a function like that of ``of``, which returns the present text of a file: it has the comments
    that were written after the run was recorded."""
    return lambda file: _present(run, file)


def _present(run: Run, file: str) -> str | None:
    cell = run.cells.get(file)
    return cell if cell is not None else text(file, run.sources.get(file, frozenset()))


def rest_of_line(run: Run, at: Frame, column: int | None) -> str:
    """Return the text of the line ``at`` from the byte ``column`` on; None: the whole line. Empty if the
    source is unknown."""
    lines = (of(run)(at.file) or "").splitlines()
    text = lines[at.line - 1] if 0 < at.line <= len(lines) else ""
    return text.encode(errors="replace")[column or 0 :].decode(errors="replace")


def line(run: Run, at: Frame) -> str:
    """Return the line ``at`` of a source file of ``run``, without spaces at its ends. Return an empty text if
    the line cannot be shown."""
    lines = (_text(run, at.file) or "").split("\n")
    return lines[at.line - 1].strip() if 0 < at.line <= len(lines) else ""


@functools.lru_cache(64)
def text(file: str, recorded: frozenset[str] = frozenset()) -> str | None:
    """Return the text of ``file``. None if it cannot be read, or must not be shown: it is no Python file of
    the project, and its SHA-256 checksum is not among ``recorded``."""
    # The author of a run directory could give it the name of a secret file of this machine, so that a CI log
    # shows this file. A recorded checksum shows that the author already has the file.
    try:
        here = Path.cwd()
        path = here / file
        content = files.read(path, MAX_BYTES)
        if not (_of_project(path, here) or hashlib.sha256(content).hexdigest() in recorded):
            return None
    except (OSError, RuntimeError):  # RuntimeError: symbolic links in a circle
        return None
    return _lines_ended(content.decode("utf-8", "replace"))


def _lines_ended(content: str) -> str:
    """Return ``content`` with a newline character at the end of each line."""
    return content.replace("\r\n", "\n").replace("\r", "\n")


def _of_project(path: Path, here: Path) -> bool:
    """Return whether ``path`` is a Python file of the project around the directory ``here``, and in no hidden
    directory. Symbolic links are followed."""
    root, target = _root(here.resolve()), path.resolve()
    if not target.is_relative_to(root) or target.suffix != ".py":
        return False
    return not any(part.startswith(".") for part in target.relative_to(root).parts)


def _root(here: Path) -> Path:
    """Return the project's directory: the nearest one from ``here`` upwards with a pyproject.toml or .git. If
    there is none, return ``here``. The home directory and all above it do not count."""
    home = Path.home().resolve()
    for folder in (here, *here.parents):
        if folder == home or folder == folder.parent:
            break
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder
    return here


def where_defined(run: Run, file: str, name: str, begins: int) -> Maker | None:
    """Return a Maker for the line ``begins`` of ``file``, if a statement there defines and wraps the function
    ``name``, such as a def with the decorator ``@jax.jit``. None if there is no such statement, or if the
    file cannot be read."""
    source = _text(run, file)
    return None if source is None else _makers(source).where_defined(name, begins)


def where_called(run: Run, file: str, name: str, site: int) -> Maker | None:
    """Return the line of ``file`` that wraps the function ``name`` for its call on the line ``site``. The
    line is certain (``Maker.certain``) if the wrapping expression is part of the call (``jax.jit(name)(x)``).
    Otherwise, return the only line that wraps ``name`` in the Python function around ``site``. None if there
    is no such line or several, or if the file cannot be read."""
    source = _text(run, file)
    return None if source is None else _makers(source).where_called(name, site)


@functools.lru_cache(64)
def _makers(source: str) -> rewrap_site.Makers:
    """Return the expressions in ``source``, the text of a file, that create function objects. The result is
    cached."""
    return rewrap_site.Makers(source)
