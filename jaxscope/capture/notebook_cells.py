"""Name the cells of a notebook as the notebook does: ``In[3]`` instead of ``/tmp/ipykernel_7/2459163477.py``.

The names are replaced in each event and in each StableHLO or HLO text before it is written to the log. So the
source locations in these texts agree with the events. A cell that is run again with unchanged text keeps its
first number.
"""

from __future__ import annotations

import importlib
import linecache
import os
import re
import sys
from typing import Any

import msgspec

from jaxscope.schema.events import AnyEvent

# The names that IPython gives to cells: in a kernel, and in a terminal.
_CELL = re.compile(r"(?:[A-Za-z]:)?[\\/][^\s\"'<>:]*ipykernel_\d+[\\/]\d+\.py|<ipython-input-\d+-[0-9a-f]+>")
MAX_TEXT = 200_000  # characters of a cell


def shell() -> Any | None:
    """Return IPython's shell object if this process is a notebook's kernel or IPython in a terminal; else
    None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None


def notebook() -> str | None:
    """Return the file name of the Jupyter notebook that runs this program. Return ``notebook`` if the name is
    unknown or the notebook is marimo's; None if no notebook runs the program."""
    if _marimo() is not None:
        return "notebook"
    running = shell()
    if running is None or getattr(running, "kernel", None) is None:
        return None
    file = os.environ.get("JPY_SESSION_NAME") or running.user_ns.get("__vsc_ipynb_file__")
    return file if isinstance(file, str) else "notebook"


def display(value: Any) -> None:
    """Show ``value``, an object with a method ``_repr_html_``, in the output of the notebook's cell."""
    marimo = _marimo()
    if marimo is not None:
        marimo.output.append(value)
    else:
        importlib.import_module("IPython.display").display(value)


def _marimo() -> Any | None:
    """Return the module marimo if it runs this program as a notebook; else None."""
    marimo = sys.modules.get("marimo")
    runs = getattr(marimo, "running_in_notebook", None)
    return marimo if runs is not None and runs() else None


def text(file: str) -> str | None:
    """Return the source text that ``linecache`` stores for ``file``, such as that of a notebook cell. Return
    None if it stores none, or if the text is longer than MAX_TEXT characters.

    ``file`` is the file name in the code object.
    """
    entry: tuple[Any, ...] = linecache.cache.get(file, ())  # has one element if the file is not read yet
    found = "".join(entry[2]) if len(entry) == 4 else ""
    return found if 0 < len(found) <= MAX_TEXT else None


class CellNames:
    """Replaces the file names of notebook cells by ``In[3]`` in events and texts before they are written to
    the log. The number of each cell comes from IPython's ``shell`` object."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._names: dict[str, str] = {}

    def event(self, event: AnyEvent) -> Any:
        """Return ``event`` as plain data, with ``In[3]`` in place of a cell's file name."""
        return self._value(msgspec.to_builtins(event))

    def text(self, text: str) -> str:
        """Return ``text``, a program as StableHLO or HLO, with ``In[3]`` in place of a cell's file name."""
        return _CELL.sub(lambda m: self._name(m[0]), text)

    def _value(self, value: Any) -> Any:
        """Return ``value``, plain data (strings, dicts, lists), with ``In[3]`` in place of each file name of
        a cell. Keys of dicts are not changed."""
        if isinstance(value, str):
            return self.text(value) if "ipykernel_" in value or "<ipython" in value else value
        if isinstance(value, dict):
            return {k: self._value(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._value(v) for v in value]
        return value

    def _name(self, file: str) -> str:
        """Return ``In[3]``, IPython's name of a cell, for the file name of the cell. Return any other file
        name unchanged, and that of a cell if IPython cannot name it."""
        if file not in self._names:
            try:
                kind, name = self._shell.compile.format_code_name(file)
            except Exception:  # an IPython without it, or a file that is no cell
                return file
            self._names[file] = str(name) if kind == "Cell" else file
        return self._names[file]
