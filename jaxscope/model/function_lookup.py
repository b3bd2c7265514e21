"""Which function a person means by what they typed: a name, ``file:line``, ``name#3``.

Forgiving: exact names first, then endings, then case; an error names what is nearest.
"""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase
from pathlib import PurePath

from jaxscope.errors import UsageError
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run

FAR = 200  # lines: further down another function is meant


def find_functions(run: Run, text: str) -> list[Function]:
    """The functions meant by ``text``: qualified name, name, ``file:line`` or an id; the user's first.

    Several where several go by that name (two lambdas).

    Raises:
      UsageError: none; the hint says which names are near.
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
    """``train_step#4`` -> the functions and the number.

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
    """Does ``pattern`` mean ``f``: a name, its ending, ``file:line`` or an id; ``*``, ``?`` and ``[]`` as in the shell."""
    wanted = pattern.strip()
    if wanted == f.id or _exact(f, wanted) or _ending(f, wanted) or _place(f, wanted):
        return True
    spelled = (f.seen.name, f.seen.qualname, f.display_name)
    return any(fnmatchcase(name, wanted) for name in spelled)


def is_called(f: Function, text: str) -> bool:
    """Is ``text`` all of a name of ``f``, its id or the place of its first line, and not a part of one?"""
    wanted = text.strip()
    names = [f.seen.qualname, f"{f.seen.module or ''}.{f.seen.qualname}"]
    names += [name.replace(".<locals>", "") for name in names]
    return wanted in (f.id, *names) or _exact(f, wanted) or _place(f, wanted)


def number_of(run: Run, c: Compilation) -> int | None:
    """The number people call ``c`` by within its function; None for calls that only left the fast path."""
    return run.number(c)


def _exact(f: Function, text: str) -> bool:
    return text in (f.seen.qualname, f.seen.name)


def _ending(f: Function, text: str) -> bool:
    full = f"{f.seen.module or ''}.{f.seen.qualname}"
    return bool(text) and (
        full == text or full.endswith("." + text) or full.replace(".<locals>", "").endswith("." + text)
    )


def _place(f: Function, text: str) -> bool:
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
    """The functions whose first line (a decorator's, often) is the nearest above ``file:line``."""
    name, _, line = text.rpartition(":")
    if not name or not line.isdecimal():
        return []
    above = [f for f in functions if _place(f, name) and 0 < int(line[:9]) - (f.seen.line or 0) < FAR]
    nearest = max((f.seen.line or 0 for f in above), default=None)
    return [f for f in above if f.seen.line == nearest]


def _loose(f: Function, text: str) -> bool:
    low = text.casefold()
    return len(low) > 1 and (low == f.seen.name.casefold() or low in f.seen.qualname.casefold())
