"""Whose a file is: the user's, an installed package's, a library's.

The one answer for lines that are read from live frames and for those that stand in the compiler's texts.
Reads file names only: texts may come from another machine, so nothing is looked up on disk.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
from collections.abc import Callable, Iterable

from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS, OWN_ROOT, WRAPPER_ROOTS


class Standing(enum.IntEnum):
    """Whose a file is. Between two frames the lower is blamed."""

    USER = 0
    INSTALLED = 1  # in site-packages and no library we know: the user's own package, or an unknown library
    LIBRARY = 2  # JAX, a library around it, the standard library, jaxscope


SEPARATOR = re.compile(r"[\\/]")
# /usr/lib/python3.11/, lib64/python3/, C:\Python311\Lib\, lib/python311.zip
STANDARD_LIBRARY = re.compile(
    r"(?i)(?:[\\/]lib(?:64)?[\\/]python\d[\d.]*t?(?:\.zip)?[\\/]|python\d+[\\/]lib[\\/])"
)
# The scripts pip writes for a package's commands: a line that only calls main(). Also ~/bin/train,
# which is then blamed only where nothing else is the user's.
LAUNCHER = re.compile(r"[\\/](?:bin|Scripts)[\\/][^\\/.]+$")
# Code without a file. Python's own; what decorators and attrs write for a class; what somebody typed or
# passed as text.
GLUE = re.compile(
    r"<(frozen |unknown>|attrs generated|@?beartype|decorator-gen|makefun|__array_function__|__jax)"
)
TYPED = re.compile(r"<(stdin|string|console|input|ipython|timed|magic|cell|doctest|notebook)", re.IGNORECASE)
GENERATED = (
    "__create_fn__."  # how the qualified names of the methods begin that dataclasses write, in <string>
)
OWN_ROOMS = frozenset({"api.py", "recording.py", "__main__.py", "launch", "cli", "capture"})


def standings(wrapper_libraries: Iterable[str] = ()) -> Callable[[str], Standing]:
    """File name -> Standing, remembered. ``wrapper_libraries``: further packages that are nobody's."""
    known = JAX_ROOTS | WRAPPER_ROOTS | {OWN_ROOT} | frozenset(wrapper_libraries)

    @functools.lru_cache(maxsize=4096)
    def standing(file: str) -> Standing:
        if not file or GLUE.match(file):
            return Standing.LIBRARY
        if file.startswith("<"):
            return Standing.USER if TYPED.match(file) else Standing.INSTALLED
        parts = SEPARATOR.split(file)
        for i in range(len(parts) - 2, -1, -1):
            if parts[i] in ("site-packages", "dist-packages"):
                root = parts[i + 1].partition(".")[0]
                return Standing.LIBRARY if root in known else Standing.INSTALLED
        if STANDARD_LIBRARY.search(file) or _checkout(parts, known):
            return Standing.LIBRARY
        return Standing.INSTALLED if LAUNCHER.search(file) else Standing.USER

    return standing


def _checkout(parts: list[str], known: frozenset[str]) -> bool:
    """Is it a library's file in a clone of its sources? ``flax/train.py`` may well be the user's, but
    ``flax/flax/nnx/module.py``, ``src/flax/...`` and ``jax/_src/...`` are not."""
    for above, part in itertools.pairwise(parts[:-1]):
        if part in known and above in (part, "src"):
            return True
        if above in JAX_ROOTS and part in ("_src", "experimental"):
            return True
    return any(a == OWN_ROOT and b in OWN_ROOMS for a, b in itertools.pairwise(parts))


STANDING = standings()


def standing_of(frame: Frame, standing: Callable[[str], Standing] = STANDING) -> Standing:
    """Whose a frame is: that of its file, but for the methods that dataclasses write."""
    if frame.file == "<string>" and frame.function.startswith(GENERATED):
        return Standing.LIBRARY
    return standing(frame.file)
