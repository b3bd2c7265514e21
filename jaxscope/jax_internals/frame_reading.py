"""Read the local variables of a Python frame and leave the frame as it was.

Knows nothing of JAX. The one module, beside ``capture``'s walk over the variables of the program, that
touches ``frame.f_locals``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any


def root(module: object) -> str:
    """Return the top-level package of a module's name; empty for anything that is no name."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def module_of(frame: FrameType) -> str:
    """Return the name of the module that ``frame``'s code belongs to; empty where it has none."""
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def walk(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield ``frame`` and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _snapshots() -> bool:
    return type(sys._getframe().f_locals) is dict


# Before Python 3.13 ``frame.f_locals`` makes a dict and caches it on the frame: a local that the
# program later sets to None would live on in it. From 3.13 on it is a view (PEP 667), and clearing
# it would clear the program's own variables.
LOCALS_ARE_A_SNAPSHOT = _snapshots()


def read(frame: FrameType, names: Iterable[str]) -> dict[str, Any]:
    """Return the local variables in ``names`` that have a value in the frame of a function.

    Reading keeps nothing alive. For the frame of a module or a class the result is empty, because its
    locals are its namespace.
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return {}
    namespace = frame.f_locals
    try:
        return {n: namespace[n] for n in names if n in namespace}
    finally:
        if LOCALS_ARE_A_SNAPSHOT:
            namespace.clear()


def take_two(frame: FrameType, first: str, second: str) -> tuple[Any, Any]:
    """Return the values of two local variables, fast; leave the frame as ``read`` does.

    Raises:
      KeyError: one of them has no value.
    """
    namespace = frame.f_locals
    try:
        return namespace[first], namespace[second]
    finally:
        if LOCALS_ARE_A_SNAPSHOT:
            namespace.clear()


def has_local(code: CodeType, name: str) -> bool:
    """Return whether the function has a local variable of this name, with or without a value."""
    return name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
