"""The warm call of a watched function: one addition, one store, one comparison, and the function is called.

In C where that was built (``jaxscope/_warm.c`` says why); here the same in Python.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from jaxscope.errors import to_be_read

__tracebackhide__ = to_be_read
PURE = "JAXSCOPE_PURE_PYTHON"  # set in the environment: do without the C


class PythonTick:
    """A number, and where it is stored each time it grows: ``cells[index] = value``. Call ``due`` goes the long way."""

    __slots__ = ("cells", "due", "index", "value")

    cells: Any
    due: int
    index: int
    value: int


class PythonCall:
    """Stands for a function, and counts its calls. ``_jaxscope_counter``: a Tick, or None while nothing records."""

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
        return self._jaxscope_due(*args, **kwargs)  # of the subclass: the long way

    if TYPE_CHECKING:

        def _jaxscope_due(self, /, *args: Any, **kwargs: Any) -> Any: ...


def _built() -> tuple[Any, Any] | None:
    if os.environ.get(PURE):
        return None
    try:
        found: Any = importlib.import_module("jaxscope._warm")
    except ImportError:  # no compiler where it was installed, or used where it lies
        return None
    return found.Tick, found.Call


Tick = PythonTick
Call = PythonCall
IN_C = False
if not TYPE_CHECKING and (_found := _built()) is not None:
    Tick, Call = _found
    IN_C = True
