"""Give functions and files names without line numbers, absolute paths and addresses, for baseline files.

These names are the same in another checkout, on another machine, and after an edit above the function.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath, PureWindowsPath

from jaxscope.model.records import Function
from jaxscope.schema import function_ids

LONGEST = 300  # characters of a name
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_NUMBER = re.compile(r"\d+")


def clean(text: str) -> str:
    """Return ``text`` as one line of printable text without addresses, at most LONGEST characters.
    ``<f at 0x7f3a12345678>`` -> ``<f at 0x>``"""
    text = _ADDRESS.sub("0x", text)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def pattern(path: str) -> str:
    """Return ``path`` with ``*`` for each number: ``state.params['layer12']['kernel']`` ->
    ``state.params['layer*']['kernel']``"""
    return clean(_NUMBER.sub("*", path))


def root(path: str) -> str:
    """Return the variable at the beginning of a path: ``state.params['kernel']`` -> ``state``."""
    return clean(re.split(r"[.\[]", path, maxsplit=1)[0] or path)


def order(f: Function) -> tuple[object, ...]:
    """Return a key that sorts functions by file and line, then by their ids without captured functions, then
    by the functions that they capture. The order does not depend on which function the program calls
    first."""
    place = _with_numbers(function_ids.without_captures(f.id))
    return f.seen.file or "", f.seen.line or 0, place, _with_numbers(f.seen.captured_code)


def _with_numbers(text: str) -> list[str | int]:
    """Return ``text`` in parts, so that numbers compare as numbers: ``f:9`` -> ``["f:", 9, ""]``."""
    return [int(part) if n % 2 else part for n, part in enumerate(re.split(r"(\d{1,18})", text))]


class Names:
    """Names for the functions and files of one run that do not depend on the machine.

    Args:
      roots: directories; the name of a file is its path relative to the first of them that contains it.
      cwd: the program's working directory, to which its relative paths refer.

    Attributes:
      by_id: {id of a function: name}: ``train.py::Trainer.step``. If functions have the same name, the names
        of what they capture (such as functions) are added: `` [loss]``. If names are still equal, the second
        function in the source code (``order``) gets the name with `` #2``.
    """

    def __init__(self, functions: Iterable[Function], roots: Sequence[str], cwd: str = "") -> None:
        self._cwd = cwd
        self._roots = [PurePath(r) for r in roots if r]
        self.by_id: dict[str, str] = {}
        taken: dict[str, int] = {}
        ordered = sorted(functions, key=order)
        names = [self._name(f) for f in ordered]
        shared = {name for name, n in Counter(names).items() if n > 1}
        for f, name in zip(ordered, names, strict=True):
            if name in shared and f.seen.captures:  # made by one factory for several functions
                name += f" [{', '.join(map(clean, f.seen.captures))}]"
            taken[name] = n = taken.get(name, 0) + 1
            self.by_id[f.id] = name if n == 1 else f"{name} #{n}"

    def _name(self, f: Function) -> str:
        """Return the name of ``f`` without additions for functions of the same name:
        ``train.py::step (jax.vmap)``."""
        name = f"{self.file(f.seen.file)}::{clean(f.display_name)}"
        return f"{name} ({', '.join(map(clean, f.seen.wrappers))})" if f.seen.wrappers else name

    def file(self, name: str | None) -> str:
        """Return a name for the file ``name`` that is the same on another machine:
        ``/home/me/project/src/train.py`` -> ``src/train.py``, ``/x/site-packages/flax/nnx.py`` ->
        ``flax/nnx.py``, ``/tmp/q.py`` -> ``q.py``; ``?`` for None."""
        if not name:
            return "?"
        path = PurePath(name)
        if self._cwd and not name.startswith("<") and not PureWindowsPath(name).is_absolute():
            # ../train.py, as the program was named
            path = PurePath(os.path.normpath(PurePath(self._cwd) / path))
            name = str(path)
        for folder in self._roots:
            if path.is_absolute() and path.is_relative_to(folder):
                return clean(path.relative_to(folder).as_posix())
        if "site-packages" in path.parts:
            at = len(path.parts) - 1 - path.parts[::-1].index("site-packages")
            return clean("/".join(path.parts[at + 1 :]))
        # The directories of other files have no meaning on another machine.
        windows = PureWindowsPath(name)
        known = windows if windows.is_absolute() else path
        return clean(known.name if known.is_absolute() or ".." in known.parts else known.as_posix()) or "?"

    def function(self, f: Function | None) -> str | None:
        """Return the name of ``f``. None if ``f`` is None or not among the functions of this object."""
        return None if f is None else self.by_id.get(f.id)
