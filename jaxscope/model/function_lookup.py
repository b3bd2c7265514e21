"""Find the function that the user named on the command line: a name, ``file:line``, or ``name#3``.

Exact names are tried first, then endings of names, then files and lines, then parts of names in any case. If
none matches, the error lists similar names.
"""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase
from pathlib import PurePath

from jaxscope.errors import UsageError
from jaxscope.model.records import Function
from jaxscope.model.run import Run

FAR = 200  # a line so many lines below the first line of a function is not in that function


def find_functions(run: Run, text: str) -> list[Function]:
    """Return the functions of ``run`` that match ``text``. Tried in this order, until a function matches: an
    id, a name, the end of a name, a file or first line (``file:line``), a part of a name, any other line.

    The user's functions come first, and of these the slowest to compile. If functions of the user match, all
    others are left out, except in a match by id or by any other line.

    Raises:
      UsageError: nothing matches; the hint lists similar names, or else names of this run.
    """
    functions = sorted(run.functions.values(), key=lambda f: (not f.user, -f.seconds, f.id))
    wanted = text.strip()
    if wanted in run.functions:
        return [run.functions[wanted]]
    for matches in (_exact, _ending, _place, _loose):
        found = [f for f in functions if matches(f, wanted)]
        if found:
            return [f for f in found if f.user] or found
    around = _around(functions, wanted)
    if around:
        return around
    names = {f.name: f for f in reversed(functions)}
    near = difflib.get_close_matches(wanted, names, 3, 0.4)
    hint = None
    if near:
        hint = "did you mean " + " or ".join(near) + "?"
    elif names:
        hint = "functions of this run: " + ", ".join(f.name for f in functions[:6])
    raise UsageError(f"no function called {wanted!r} in this run", hint=hint, slug="function-not-found")


def find_compilations(run: Run, text: str) -> tuple[list[Function], int | None]:
    """Return (functions, number of the compilation) for ``text``: ``train_step#4`` gives the functions
    ``train_step`` and 4. The number is None if ``text`` does not end with ``#`` and a number.

    If several functions match, all are returned, and at least one of them has a compilation with this number.

    Raises:
      UsageError: no such function, or no such number.
    """
    name, mark, number = text.rpartition("#")
    if not mark or not number.isdecimal():
        return find_functions(run, text), None
    functions = find_functions(run, name)
    n = int(number[:9])
    if not any(1 <= n <= len(run.numbered(f)) for f in functions):
        have = max(len(run.numbered(f)) for f in functions)
        raise UsageError(
            f"{functions[0].name} has no compilation #{n}",
            hint=f"it has #1 to #{have}" if have else "it was never traced, lowered or compiled",
            slug="compilation-not-found",
        )
    return functions, n


def matches(f: Function, pattern: str) -> bool:
    """Return whether ``pattern`` matches the function ``f``. ``pattern`` is a name, the ending of a name, a
    file, ``file:line``, an id, or a shell pattern (``train_*``)."""
    wanted = pattern.strip()
    if wanted == f.id or _exact(f, wanted) or _ending(f, wanted) or _place(f, wanted):
        return True
    names = (f.seen.name, f.seen.qualname, f.display_name)
    return any(fnmatchcase(name, wanted) for name in names)


def is_called(f: Function, text: str) -> bool:
    """Return whether ``text`` is a complete name, the id, the file or the first line (``file:line``) of
    ``f``. The complete names of a method are ``train.A.step``, ``A.step`` and ``step``."""
    wanted = text.strip()
    names = [f.seen.qualname, f"{f.seen.module or ''}.{f.seen.qualname}"]
    names += [name.replace(".<locals>", "") for name in names]
    return wanted in (f.id, *names) or _exact(f, wanted) or _place(f, wanted)


def has_twin(run: Run, f: Function) -> bool:
    """Return whether another function of ``run`` has the same name, file and line as ``f``, as if one factory
    made both."""
    place = f.seen.name, f.seen.file, f.seen.line
    return any(
        g is not f and (g.seen.name, g.seen.file, g.seen.line) == place for g in run.functions.values()
    )


def _exact(f: Function, text: str) -> bool:
    """Return whether ``text`` is the name or the qualified name of ``f``."""
    return text in (f.seen.qualname, f.seen.name)


def _ending(f: Function, text: str) -> bool:
    """Return whether ``text`` is the full name of ``f``, or the end of it after a dot: ``B.step`` of
    ``train.B.step``. ``<locals>`` may be left out."""
    full = f"{f.seen.module or ''}.{f.seen.qualname}"
    return bool(text) and (
        full == text or full.endswith("." + text) or full.replace(".<locals>", "").endswith("." + text)
    )


def _place(f: Function, text: str) -> bool:
    """Return whether ``text`` is the file of ``f``, or ``file:line`` with the first line of ``f``. The end of
    the file's path suffices: ``train.py`` for ``/home/me/train.py``."""
    if not f.seen.file:
        return False
    name, _, line = text.rpartition(":")
    if not line.isdecimal():
        name, line = text, ""
    path = PurePath(f.seen.file)
    wanted = PurePath(name)
    if not wanted.parts or path.parts[-len(wanted.parts) :] != wanted.parts:
        return False
    return not line or f.seen.line == int(line[:9])


def _around(functions: list[Function], text: str) -> list[Function]:
    """Return the functions that probably contain the line ``text`` (``train.py:12``): of those that begin
    above it, those whose first line is the nearest. Empty if ``text`` is no line, or if no function begins
    less than FAR lines above it."""
    name, _, line = text.rpartition(":")
    if not name or not line.isdecimal():
        return []
    above = [f for f in functions if _place(f, name) and 0 < int(line[:9]) - (f.seen.line or 0) < FAR]
    nearest = max((f.seen.line or 0 for f in above), default=None)
    return [f for f in above if f.seen.line == nearest]


def _loose(f: Function, text: str) -> bool:
    """Return whether ``text`` (at least two characters) is a part of the qualified name of ``f``. Upper and
    lower case are equal."""
    low = text.casefold()
    return len(low) > 1 and (low == f.seen.name.casefold() or low in f.seen.qualname.casefold())
