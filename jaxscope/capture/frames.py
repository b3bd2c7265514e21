"""Find the user's lines in the Python stack: those that belong neither to JAX nor to a library around JAX
such as flax.

The names of JAX's own functions on the stack are in ``jax_internals`` only.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import sys
import sysconfig
from collections.abc import Container, Iterable
from types import FrameType, TracebackType

from jaxscope.jax_internals.frame_reading import module_of as module_of
from jaxscope.jax_internals.frame_reading import root as root
from jaxscope.jax_internals.frame_reading import walk as walk
from jaxscope.jax_internals.names import TREE_MODULES, TRIMS_TRACEBACKS
from jaxscope.schema.file_owner import GENERATED, GLUE, Standing, standing_of, standings
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import DECORATOR_ROOTS, JAX_ROOTS, OWN_ROOT, WRAPPER_ROOTS

MAX_STACK = 12
_RUN_WHAT_THEY_GET = DECORATOR_ROOTS | sys.stdlib_module_names

_skipped: frozenset[str] = JAX_ROOTS | WRAPPER_ROOTS | {OWN_ROOT}
_of_file = standings()


def configure(extra: list[str]) -> None:
    """From now on, treat the packages with the names ``extra`` as libraries around JAX, like flax: their
    lines do not count as the user's."""
    global _skipped, _of_file
    _skipped = JAX_ROOTS | WRAPPER_ROOTS | {OWN_ROOT} | frozenset(extra)
    _of_file = standings(extra)
    _standing.cache_clear()
    file_standing.cache_clear()
    library_of.cache_clear()


def is_library(module: object) -> bool:
    """Return whether the module named ``module`` (``flax.linen.module``) belongs to JAX, to a library around
    JAX such as flax, or to jaxscope."""
    return root(module) in _skipped


_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/](\w+)")
# The directories of the standard library, as they appear in code objects.
_STDLIB = tuple(
    {os.path.dirname(os.__file__) + os.sep}  # noqa: PTH120
    | {path + os.sep for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))}
)


def is_pythons_own(file: str) -> bool:
    """Return whether ``file``, the file name of a code object, belongs to Python's standard library."""
    return file.startswith("<frozen") or (
        file.startswith(_STDLIB) and "site-packages" not in file and "dist-packages" not in file
    )


@functools.lru_cache(4096)
def _standing(file: str, package: str, function: str) -> Standing:
    """Return who owns a function: the user, an installed package or a library (JAX, jaxscope, Python itself,
    or a library around JAX such as flax).

    Args:
      file: the file with the code of the function.
      package: the package that defines the function; empty: unknown.
      function: the qualified name of the function if its code has no file (``<string>``); else empty.
    """
    if package in _skipped or is_pythons_own(file):
        return Standing.LIBRARY
    return standing_of(Frame(file, 0, function), _of_file)


def standing(frame: FrameType) -> Standing:
    """Return who owns the code of a running frame: the user, an installed package or a library (JAX,
    jaxscope, Python itself, or a library around JAX such as flax). A library that is imported from a clone of
    its sources is recognized too, by its module name."""
    code = frame.f_code
    function = code.co_qualname if code.co_filename == "<string>" else ""
    return _standing(code.co_filename, root(module_of(frame)), function)


def is_user(frame: FrameType) -> bool:
    """Return whether the code of ``frame`` belongs to the user or to an installed package, and not to JAX, a
    library around JAX, jaxscope or Python itself."""
    return standing(frame) != Standing.LIBRARY


@functools.lru_cache(4096)
def file_standing(file: str) -> Standing:
    """Return who owns the code in ``file``: the user, an installed package or a library (JAX, jaxscope,
    Python itself, or a library around JAX such as flax). A library that is imported from a clone of its
    sources is recognized too."""
    return Standing.LIBRARY if library_of(file) is not None else _standing(file, "", "")


@functools.lru_cache(4096)
def library_of(file: str | None) -> str | None:
    """Return the name of the package that contains ``file`` if it is JAX, a library around JAX such as flax,
    or jaxscope; else None. The package must be imported."""
    for name in _skipped if file is not None else ():
        for folder in getattr(sys.modules.get(name), "__path__", ()) or ():
            if file is not None and file.startswith(folder + os.sep):
                return name
    return None


def package_of(file: str) -> str | None:
    """Return the name of the installed package whose directory in ``site-packages`` contains ``file``:
    ``numpy``. Return None if the file is in no such directory."""
    found = _INSTALLED.findall(file)
    return found[-1] if found else None


def is_not_users_file(file: str) -> bool:
    """Return whether ``file`` belongs to an installed package, a library or Python."""
    return file_standing(file) != Standing.USER


def location(frame: FrameType) -> Frame:
    """Return the file, the line and the function (its qualified name) that ``frame`` is executing, as data
    for the log."""
    code = frame.f_code
    return Frame(file=code.co_filename, line=frame.f_lineno or code.co_firstlineno, function=code.co_qualname)


def column(frame: FrameType) -> int | None:
    """Return the column, in bytes of UTF-8 from 0, at which the expression begins that ``frame`` is
    executing; None if the code has no information about columns."""
    at = next(itertools.islice(frame.f_code.co_positions(), max(frame.f_lasti, 0) // 2, None), None)
    return at[2] if at is not None else None


def users(frames: Iterable[FrameType]) -> list[FrameType]:
    """Return those of ``frames`` (innermost first) that run the user's code, at most MAX_STACK. If there are
    none, return the frames of installed packages (other than JAX and libraries around JAX) instead."""
    best, kept = Standing.LIBRARY, list[FrameType]()
    for f in frames:
        whose = standing(f)
        if whose < best:
            best, kept = whose, []
        if whose == best != Standing.LIBRARY:
            kept.append(f)
            if best == Standing.USER and len(kept) == MAX_STACK:
                break
    return kept[:MAX_STACK]


def is_installed_beside(file: str | None, frame: FrameType | None) -> bool:
    """Return whether ``file`` belongs to an installed package while code of the user is on the stack of
    ``frame``. If so, the functions in ``file`` do not count as the user's. False if ``file`` is None."""
    if file is None or file_standing(file) != Standing.INSTALLED:
        return False
    return any(standing(f) == Standing.USER for f in walk(frame))


def user_frames(frame: FrameType | None) -> list[Frame]:
    """Return the user's lines on the stack of ``frame``, innermost first, at most MAX_STACK. If there are
    none, return the lines of installed packages. The list is empty if ``frame`` is None."""
    return [location(f) for f in users(walk(frame))]


def raised_through(trace: TracebackType | None) -> list[Frame]:
    """Return the user's lines in the traceback ``trace`` of an exception, innermost first, at most MAX_STACK.
    If there are none, return the lines of installed packages. The list is empty if ``trace`` is None."""
    lines: dict[FrameType, int] = {}
    while trace is not None:
        lines[trace.tb_frame] = trace.tb_lineno
        trace = trace.tb_next
    return [Frame(f.f_code.co_filename, lines[f], f.f_code.co_qualname) for f in users(list(lines)[::-1])]


def raised_in(trace: TracebackType | None) -> str | None:
    """Return the name of the package whose code raised an exception; None if the user's code did. Frames of
    JAX and of Python itself do not count: if they raised it, the code that called them is meant. Also None if
    there is only such code. ``trace`` is the traceback of the exception."""
    last: FrameType | None = None
    while trace is not None:
        module = root(module_of(trace.tb_frame))
        if module not in JAX_ROOTS and not is_pythons_own(trace.tb_frame.f_code.co_filename):
            last = trace.tb_frame
        trace = trace.tb_next
    return None if last is None or standing(last) == Standing.USER else root(module_of(last)) or None


def _between(frame: FrameType) -> bool:
    """Return whether ``frame`` only passes a call on. Such frames are the wrapper of ``jaxscope.watch``,
    Python's import system, a method that a decorator generated (the ``__init__`` of a dataclass), and JAX's
    function that shortens tracebacks."""
    module = module_of(frame)
    own = root(module) == OWN_ROOT or module == TRIMS_TRACEBACKS
    file = frame.f_code.co_filename
    generated = file == "<string>" and frame.f_code.co_qualname.startswith(GENERATED)
    return own or generated or GLUE.match(file) is not None


def into_library(frame: FrameType | None, callbacks: Container[str] = frozenset()) -> tuple[int, str | None]:
    """Find the user's line that called JAX or a library which uses JAX, such as flax. Return (the index of
    this line in ``user_frames(frame)``, the name of the library). If several lines called such a library,
    take the outermost one.

    If no line called such a library, return (0, the name of the installed package that the innermost line
    called). The name is None if the innermost line called no package. Functions of NumPy and ``jax.tree.map``
    that call a function of the user are treated like a loop: the user's lines inside them count first.

    Args:
      frame: the innermost frame of the stack.
      callbacks: names of functions of JAX that run the user's functions for a compiled program. Lines further
        out than such a function are not examined.
    """
    # The library's compilations are attributed to this line, because the user cannot add jit to the library.
    # For hk.transform(f), it is the line that called the transformed function, and not a line in f.
    own = set(users(walk(frame)))
    found: tuple[int, str | None] = (0, None)
    n, library, installed, applies = 0, None, None, False
    for f in walk(frame):
        if f in own:
            if library is not None and not (n and applies):
                found = (n, library)
            elif n == 0:
                found = (0, installed)
            n, library = n + 1, None
            if n == len(own):
                break
        elif f.f_code.co_name in callbacks and is_library(module_of(f)):
            break
        elif not _between(f):
            name = root(module_of(f))
            library = name if name in _skipped and name not in _RUN_WHAT_THEY_GET else None
            installed = name if standing(f) == Standing.INSTALLED else None
            applies = name == "numpy" or module_of(f) in TREE_MODULES
    return found
