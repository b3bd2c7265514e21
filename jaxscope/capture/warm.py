"""The warm call of a watched function: one addition, one store, one comparison, and the function is called.

In C where that was built (``jaxscope/_warm.c`` says why); here the same in Python.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

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
        return self._jaxscope_due(*args, **kwargs)

    def _jaxscope_due(self, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


if TYPE_CHECKING or os.environ.get(PURE):
    Tick, Call = PythonTick, PythonCall
else:
    try:
        from jaxscope._warm import Call, Tick
    except ImportError:  # no compiler where it was installed, or used where it lies
        Tick, Call = PythonTick, PythonCall

IN_C = Tick is not PythonTick
