"""The Python stack: which lines are the user's, and reading a frame's locals without a trace.

Knows nothing of JAX's functions (capture.seams does).
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS, OWN_ROOT, WRAPPER_ROOTS

MAX_STACK = 12

_skipped: frozenset[str] = JAX_ROOTS | WRAPPER_ROOTS | {OWN_ROOT}


def configure(extra: list[str]) -> None:
    """Take further packages for wrapper libraries."""
    global _skipped
    _skipped = JAX_ROOTS | WRAPPER_ROOTS | {OWN_ROOT} | frozenset(extra)
    is_library_file.cache_clear()


def root(module: object) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def is_library(module: object) -> bool:
    """Does the module belong to JAX, a wrapper library or us?"""
    return root(module) in _skipped


def module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def is_user(frame: FrameType) -> bool:
    # "<frozen importlib._bootstrap>" and friends are nobody's line.
    return not is_library(module_of(frame)) and not frame.f_code.co_filename.startswith("<frozen")


def is_pythons_own(file: str) -> bool:
    """Is it a file of the standard library?"""
    return file.startswith("<frozen") or (file.startswith(_STDLIB) and "site-packages" not in file)


@functools.lru_cache(4096)
def is_library_file(file: str) -> bool:
    """Where only a file name tells: installed, of Python's own, or in a package of JAX's, a wrapper's or ours."""
    if "site-packages" in file or "dist-packages" in file or is_pythons_own(file):
        return True
    return any(
        file.startswith(folder + os.sep)
        for name in _skipped
        for folder in getattr(sys.modules.get(name), "__path__", ()) or ()
    )


_STDLIB = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  as code objects spell it


def walk(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def location(frame: FrameType) -> Frame:
    code = frame.f_code
    return Frame(file=code.co_filename, line=frame.f_lineno or code.co_firstlineno, function=code.co_qualname)


def user_frames(frame: FrameType | None) -> list[Frame]:
    """The user's frames above ``frame``, innermost first, at most MAX_STACK of them."""
    found: list[Frame] = []
    for f in walk(frame):
        if is_user(f):
            found.append(location(f))
            if len(found) == MAX_STACK:
                break
    return found


def into_library(frame: FrameType | None) -> int:
    """The position among ``user_frames`` of the outermost that called a library: what is below is not the user's to wrap.

    A line inside ``hk.transform(f)`` is the user's, and called by the library from another line of theirs.
    """
    found, n, library = 0, 0, True
    for f in walk(frame):
        user = is_user(f)
        if not user and (root(module_of(f)) == OWN_ROOT or f.f_code.co_filename.startswith("<frozen")):
            continue  # an import, a watched function: between two lines of the user's
        if user and library:
            found = n
        n += user
        library = not user
        if n == MAX_STACK:
            break
    return found


def _snapshots() -> bool:
    return type(sys._getframe().f_locals) is dict


# Before Python 3.13 ``frame.f_locals`` makes a dict and caches it on the frame: a local that the
# program later sets to None would live on in it. From 3.13 on it is a view (PEP 667), and clearing
# it would clear the program's own variables.
LOCALS_ARE_A_SNAPSHOT = _snapshots()


def read(frame: FrameType, *names: str) -> dict[str, Any]:
    """Some locals of a function's frame; a name that is not there is left out.

    The frame is left as it was: nothing stays alive because of the look.
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return {}  # a module's or class's locals are its namespace: not ours to touch
    names_there = frame.f_locals
    try:
        return {n: names_there[n] for n in names if n in names_there}
    finally:
        if LOCALS_ARE_A_SNAPSHOT:
            names_there.clear()
