"""Write and read the ids of functions in a recording: ``step@train.py:12 | jax.vmap``.

An id is text, so that a person who reads a log or a JSON report sees which function is meant. The event
``FunctionSeen`` has the parts of the id as data. Only a reader without this event, such as one that has the
id of a function of another process, needs ``read``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

_BETWEEN = " | "
_CAPTURES = f"{_BETWEEN}captures "
# A name, a file and a line; after the line, the column of a lambda or a hash of the code.
_PARTS = re.compile(r"([^@]*)@(.*?):(\d{1,9})(?::\d+|#\w+)?", re.DOTALL)


class FunctionId(NamedTuple):
    """The parts of the id of a function.

    Attributes:
      qualname: the qualified name of the function: ``Trainer.step``.
      file, line: where it is defined; None: unknown.
    """

    qualname: str
    file: str | None
    line: int | None

    @property
    def name(self) -> str:
        """Return the last part of the qualified name: ``step``."""
        return self.qualname.rpartition(".")[2] or self.qualname


def written(
    qualname: str, file: str | None, line: int | str | None, wrappers: Iterable[str] = (), captured: str = ""
) -> str:
    """Return the id of a function in a recording: ``step@train.py:12 | jax.vmap``.

    Args:
      qualname: the qualified name of the function: ``step``.
      file: the file that defines it; None: unknown.
      line: its first line and what distinguishes it from other functions of this line: ``12``, ``"12:8"`` for
        a lambda at column 8, ``"1#1f0c9a"`` with a hash of the code; None: unknown.
      wrappers: the names of the wrappers around the function: ``["jax.vmap"]``.
      captured: a text that describes the functions that the function captures (reads from its closure, a
        partial, ...). Unless the text is empty, its hash is appended to the id.
    """
    around = "".join(f"{_BETWEEN}{w}" for w in wrappers)
    digest = f"{_CAPTURES}{hashlib.sha256(captured.encode()).hexdigest()[:8]}" if captured else ""
    return f"{qualname}@{file or '?'}:{line if line is not None else '?'}{around}{digest}"


def read(id: str) -> FunctionId:
    """Return the parts of the id of a function: ``step@train.py:12 | jax.vmap`` gives ``FunctionId("step",
    "train.py", 12)``. If the id is shortened and its line is lost, file and line are None."""
    found = _PARTS.fullmatch(id.partition(_BETWEEN)[0])
    if found is None:
        return FunctionId(id.partition("@")[0], None, None)
    return FunctionId(found[1], found[2], int(found[3]))


def without_captures(id: str) -> str:
    """Return the id of a function without the hash of the functions that it captures."""
    return id.partition(_CAPTURES)[0]
