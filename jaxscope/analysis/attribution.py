"""Which frame of a traceback a reader would blame: the innermost line of the user's own.

Reads file names only, as the compiler's texts have them: they may come from another machine, so nothing
is looked up on disk. Knows nothing of how a text spells its frames.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
from collections.abc import Callable, Iterable

import msgspec

from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS, OWN_ROOT, WRAPPER_ROOTS


class Standing(enum.IntEnum):
    """Whose a file is. Between two frames the lower is blamed."""

    USER = 0
    INSTALLED = 1  # in site-packages and no library we know: the user's own package, or an unknown library
    LIBRARY = 2  # JAX, a library around it, the standard library, jaxscope


class Blame(msgspec.Struct, frozen=True):
    """``frame`` is None where every frame is a library's. ``folded``: the library frames between it and
    the operation, innermost first; ``callers``: the frames above it that are as much the user's."""

    frame: Frame | None = None
    folded: tuple[Frame, ...] = ()
    callers: tuple[Frame, ...] = ()


NOBODY = Blame()

SEPARATOR = re.compile(r"[\\/]")
# /usr/lib/python3.11/, lib64/python3/, C:\Python311\Lib\, lib/python311.zip
STANDARD_LIBRARY = re.compile(
    r"(?i)(?:[\\/]lib(?:64)?[\\/]python\d[\d.]*t?(?:\.zip)?[\\/]|python\d+[\\/]lib[\\/])"
)
# The scripts pip writes for a package's commands: a line that only calls main(). Also ~/bin/train,
# which is then blamed only where nothing else is the user's.
LAUNCHER = re.compile(r"[\\/](?:bin|Scripts)[\\/][^\\/.]+$")
OWN_ROOMS = frozenset({"api.py", "recording.py", "__main__.py", "launch", "cli", "capture"})


def standings(wrapper_libraries: Iterable[str] = ()) -> Callable[[str], Standing]:
    """File name -> Standing, remembered. ``wrapper_libraries``: further packages that are nobody's."""
    known = JAX_ROOTS | WRAPPER_ROOTS | {OWN_ROOT} | frozenset(wrapper_libraries)

    @functools.lru_cache(maxsize=4096)
    def standing(file: str) -> Standing:
        if not file or file.startswith("<frozen"):
            return Standing.LIBRARY
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


def blame(frames: Iterable[Frame], standing: Callable[[str], Standing] = STANDING) -> Blame:
    """``frames`` innermost first. The innermost frame of the lowest standing there is."""
    ranked = [(standing(f.file), f) for f in frames]
    if not ranked:
        return NOBODY
    best = min(rank for rank, _ in ranked)
    if best == Standing.LIBRARY:
        return Blame(folded=tuple(f for _, f in ranked))
    at = next(i for i, (rank, _) in enumerate(ranked) if rank == best)
    return Blame(
        frame=ranked[at][1],
        folded=tuple(f for _, f in ranked[:at]),
        callers=tuple(f for rank, f in ranked[at + 1 :] if rank == best),
    )
