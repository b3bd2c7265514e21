"""The user's source files, where they are at hand: a run may be read on another machine, or much later."""

from __future__ import annotations

import functools
from pathlib import Path

from jaxscope.analysis import makers
from jaxscope.analysis.makers import Maker

MAX_BYTES = 4_000_000


@functools.lru_cache(64)
def text(file: str) -> str | None:
    """The text of ``file``; None where there is none, or none to be read."""
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        return path.read_text("utf-8", "replace")
    except (OSError, ValueError):  # ValueError: a name with a null byte
        return None


def where_defined(file: str, name: str, begins: int) -> Maker | None:
    """``Makers.where_defined`` of a file, which is parsed once; None where it cannot be read."""
    source = text(file)
    return None if source is None else _makers(source).where_defined(name, begins)


def where_called(file: str, name: str, site: int) -> Maker | None:
    """``Makers.where_called`` of a file, which is parsed once; None where it cannot be read."""
    source = text(file)
    return None if source is None else _makers(source).where_called(name, site)


@functools.lru_cache(64)
def _makers(source: str) -> makers.Makers:
    return makers.Makers(source)
