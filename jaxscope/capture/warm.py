"""Count the calls of a watched function (``jaxscope.watch``): each call costs one addition, one store and one
comparison.

This is the version in Python. Where a C compiler was found at installation, ``jaxscope/_warm.c`` is used
instead, which does the same.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from jaxscope.errors import to_be_read

__tracebackhide__ = to_be_read
PURE = "JAXSCOPE_PURE_PYTHON"  # set in the environment: do not use the C version
VERSION = 2  # of the interface between Python and the C version


class PythonTick:
    """A count of calls, with the place in a memory-mapped file where the count is stored.

    Attributes:
      value: the count.
      cells, index: each new value is stored by ``cells[index] = value``.
      due: calls whose number is at least ``due`` need more work than counting.
    """

    __slots__ = ("cells", "due", "index", "value")

    cells: Any
    due: int
    index: int
    value: int


class PythonCall:
    """Wraps a function for ``jaxscope.watch`` and counts its calls.

    Attributes:
      _jaxscope_function: the watched function.
      _jaxscope_counter: the ``Tick`` that counts its calls; None while there is no recording.
    """

    __slots__ = ("_jaxscope_counter", "_jaxscope_function")

    _jaxscope_counter: Any
    _jaxscope_function: Any

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        counter = self._jaxscope_counter
        if counter is None:
            return self._jaxscope_function(*args, **kwargs)
        counter.value = value = counter.value + 1
        counter.cells[counter.index] = value
        if value < counter.due:
            return self._jaxscope_function(*args, **kwargs)
        return self._jaxscope_due(*args, **kwargs)  # which the subclass defines

    if TYPE_CHECKING:

        def _jaxscope_due(self, /, *args: Any, **kwargs: Any) -> Any: ...


def _built() -> tuple[Any, Any, Any] | None:
    """Return (``Tick``, ``Call``, ``EventFilter``), the classes of the C extension. Return None if it was not
    built, if it was built from other sources (``VERSION``), or if the environment variable
    JAXSCOPE_PURE_PYTHON is set."""
    if os.environ.get(PURE):
        return None
    try:
        built: Any = importlib.import_module("jaxscope._warm")
    except ImportError:  # no compiler when it was installed, or used from a source tree
        return None
    if getattr(built, "VERSION", 1) != VERSION:  # left by an installation of another version
        return None
    return built.Tick, built.Call, built.EventFilter


Tick = PythonTick
Call = PythonCall
EventFilter: Any = None  # ``listeners.python_filter`` does the same in Python
IN_C = False
if not TYPE_CHECKING and (_classes := _built()) is not None:
    Tick, Call, EventFilter = _classes
    IN_C = True
