"""Read the local variables of a Python frame and leave the frame as it was.

Nothing in this module is about JAX. ``frame.f_locals`` is used only in this module, and where ``capture``
searches for variables that refer to arrays.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any


def root(module: object) -> str:
    """Return the top-level package of a module's full name: ``jax`` for ``jax._src.core``. Empty if
    ``module`` is no string."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def module_of(frame: FrameType) -> str:
    """Return the name of the module whose code ``frame`` runs (its global ``__name__``); empty if there is
    none."""
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def walk(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield ``frame`` and the frames that called it, innermost first. Yield nothing for None."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _snapshots() -> bool:
    """Return whether ``frame.f_locals`` is a dict with copies of the variables (before Python 3.13), and not
    a view of the variables."""
    return type(sys._getframe().f_locals) is dict


# Before Python 3.13, ``frame.f_locals`` makes a dict and caches it on the frame. This dict would keep the
# value of a variable alive that the program later sets to None, so the dict is cleared. From 3.13 on,
# ``f_locals`` is a view (PEP 667), and clearing the view would clear the program's own variables.
LOCALS_ARE_A_SNAPSHOT = _snapshots()


def read(frame: FrameType, names: Iterable[str]) -> dict[str, Any]:
    """Return a dict: name -> value of the local variables ``names`` of ``frame``, without the variables that
    have no value. The frame keeps no copies of the variables afterwards. The dict is empty for the frame of a
    module or a class body."""
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # its f_locals is the namespace itself
        return {}
    namespace = frame.f_locals
    try:
        return {n: namespace[n] for n in names if n in namespace}
    finally:
        if LOCALS_ARE_A_SNAPSHOT:
            namespace.clear()


# Returns ``frame.f_locals``, without a Python function, for code that runs often. The caller must clear the
# result afterwards if LOCALS_ARE_A_SNAPSHOT, as ``read`` does.
locals_of = operator.attrgetter("f_locals")


def has_local(code: CodeType, name: str) -> bool:
    """Return whether the function with the code object ``code`` has a local variable ``name``, with or
    without a value."""
    return name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
