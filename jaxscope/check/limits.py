"""The limits that users can set in ``[tool.jaxscope.check]``: their names, and how to parse their values.

This module imports nothing slow. ``budgets`` and ``program_limits`` check a run against the limits.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from jaxscope.errors import UsageError
from jaxscope.schema.collectives import KINDS

ANY = "*"
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*(?:([KMGT]?)(i?)B)?\s*", re.IGNORECASE)


OF_A_RUN = ("compilations", "seconds")  # limits on a whole run; all others limit each program


class Limits(msgspec.Struct, frozen=True):
    """The limits that one table of options sets: for a run, or for the functions or targets (machines to
    compile for) that a pattern matches. None or an empty dict means that there is no limit.

    Attributes:
      compilations: number of compilations of the user's functions, including programs loaded from the
        persistent cache, without operations outside jit.
      seconds: seconds of tracing, lowering and compiling. For a whole run: of its main process, with library
        functions and operations outside jit.
      collectives: key -> number of collective instructions in one program. The key tells which ones:
        ``kind``, ``kind@axis`` (``all-gather@data``), ``*@axis``, or ``*`` for all. An instruction in a loop
        counts once.
      collective_bytes: the same keys -> bytes of the results of these collectives, on one device in one call
        of the program. Each iteration of a loop counts, and of a conditional only the largest branch.
      temp_bytes, peak_bytes: temporaries and peak memory of one program, on one device.
      replicated_bytes: bytes on one device of the arguments of one program that other devices have copies of.
      constant_bytes: bytes of the arrays that one program captured.
    """

    compilations: int | None = None
    seconds: float | None = None
    collectives: dict[str, int] = {}
    collective_bytes: dict[str, int] = {}
    temp_bytes: int | None = None
    peak_bytes: int | None = None
    replicated_bytes: int | None = None
    constant_bytes: int | None = None

    def __bool__(self) -> bool:
        return self != Limits()

    @property
    def of_programs(self) -> Limits:
        """Return a copy without ``compilations`` and ``seconds``: only the limits on single programs
        remain."""
        return msgspec.structs.replace(self, **dict.fromkeys(OF_A_RUN))

    def without(self, special: Iterable[Limits]) -> Limits:
        """Return a copy without the limits that one of ``special`` sets. A dict such as ``collectives`` is
        one limit: it is removed or kept as a whole."""
        nothing = Limits()
        names = Limits.__struct_fields__
        replaced = {n for own in special for n in names if getattr(own, n) != getattr(nothing, n)}
        return msgspec.structs.replace(self, **{name: getattr(nothing, name) for name in replaced})


# -- parse one value, from TOML or a command line; a ValueError describes what is valid ---------------------


def count(value: Any) -> int:
    """Parse a whole number, 0 or more, as the value of a limit: ``3`` or ``"3"`` -> 3.

    Raises:
      ValueError: ``value`` is anything else; the text describes valid values.
    """
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,18}\s*", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("a whole number, 0 or more")


def seconds(value: Any) -> float:
    """Parse a number of seconds, 0 or more, as the value of a limit: ``60``, ``0.5`` or ``"60"``.

    Raises:
      ValueError: ``value`` is anything else; the text describes valid values.
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isfinite(number) and number >= 0:
        return number
    raise ValueError("a number of seconds, 0 or more")


def size(value: Any) -> int:
    """Parse a size as the value of a limit, and return bytes: ``1048576``, ``"64 MiB"`` (67108864) or
    ``"1.5GB"`` (1500000000).

    Raises:
      ValueError: ``value`` is anything else; the text describes valid values.
    """
    if isinstance(value, str):
        found = _SIZE.fullmatch(value)
        if found is not None:
            number, prefix, binary = found.groups()
            power = " KMGT".index(prefix.upper()) if prefix else 0
            return int(float(number) * (1024 if binary else 1000) ** power) if power else int(float(number))
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError('a size: a number of bytes, or a text such as "64 MiB"')


def by_kind(read: Callable[[Any], int]) -> Callable[[Any], dict[str, int]]:
    """Return a function that parses a limit on collectives to a dict: a key as in ``Limits.collectives`` ->
    limit. A value that is no table limits all collectives together: with ``read`` = ``size``, ``"64 MiB"`` ->
    ``{"*": 67108864}``. ``read`` parses one limit. The returned function raises ValueError if a key or a
    limit is invalid."""

    def table(value: Any) -> dict[str, int]:
        if not isinstance(value, Mapping):
            return {ANY: read(value)}
        return {_collective(key): read(each) for key, each in value.items()}

    return table


def _collective(key: str) -> str:
    """Return ``key``, which says which collectives are limited (``all-gather@data``), without spaces around
    it.

    Raises:
      ValueError: there is no such kind of collective, or no axis after ``@``.
    """
    kind, at, axis = key.strip().partition("@")
    if kind != ANY and kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, 1, 0.5)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ValueError(
            f"a table by kind of collective ({key!r} is not one; {meant}{', '.join(KINDS)}, or *)"
        )
    if at and not axis:
        raise ValueError(f"a table by kind and mesh axis ({key!r} names no axis: {kind}@data)")
    return key.strip()


# name in the configuration -> (attribute of Limits, parser of its value, an example)
SPELLED: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "max-compilations": ("compilations", count, "12"),
    "max-compile-seconds": ("seconds", seconds, "60"),
    "max-collectives": ("collectives", by_kind(count), "{ all-gather = 2 }"),
    "max-collective-bytes": ("collective_bytes", by_kind(size), '"64 MiB"'),
    "max-temp-bytes": ("temp_bytes", size, '"2 GiB"'),
    "max-peak-bytes": ("peak_bytes", size, '"12 GiB"'),
    "max-replicated-bytes": ("replicated_bytes", size, '"100 MiB"'),
    "max-constant-bytes": ("constant_bytes", size, '"1 MiB"'),
}


def of(values: Mapping[str, Any]) -> Limits:
    """Return the limits among ``values``, a dict: name of an option -> its parsed value.
    ``{"max-compilations": 3}`` -> ``Limits(compilations=3)``. Options that are no limits are ignored."""
    return Limits(**{SPELLED[k][0]: v for k, v in values.items() if k in SPELLED})


def read(name: str, value: Any, where: str) -> Any:
    """Parse ``value``, the value of the limit ``name`` in TOML or on the command line: for
    ``max-temp-bytes``, ``"2 GiB"`` -> 2147483648. ``where`` names the file or option, for error messages.

    Raises:
      UsageError: the value is not valid for this limit.
    """
    _, reader, example = SPELLED[name]
    try:
        return reader(value)
    except ValueError as e:
        raise UsageError(
            f"{where}: {name} = {value!r} is not {e}",
            hint=f"for example: {name} = {example}",
            slug="limit-value",
        ) from None


def functions(value: Any, where: str) -> dict[str, Limits]:
    """Parse ``value``, the table ``[tool.jaxscope.check.functions]``. Return a dict: name or pattern of
    functions (``train_*``) -> their limits. ``where`` names the file, for error messages.

    Raises:
      UsageError: a value is not a table, a limit does not exist, or its value is invalid.
    """
    return _by_name("functions", value, where, "train_*", SPELLED)


def targets(value: Any, where: str) -> dict[str, Limits]:
    """Parse ``value``, the table ``[tool.jaxscope.check.targets]``. Return a dict: name or pattern of targets
    (``v5e:*``) -> limits on the programs compiled for them. ``where`` names the file, for error messages.

    Raises:
      UsageError: a value is not a table, a limit does not exist or is no limit on single programs, or its
        value is invalid.
    """
    of_programs = {name: spelled for name, spelled in SPELLED.items() if spelled[0] not in OF_A_RUN}
    return _by_name("targets", value, where, "v5e:16x16", of_programs)


def _by_name(
    kind: str, value: Any, where: str, example: str, known: Mapping[str, object]
) -> dict[str, Limits]:
    """Parse ``value``, the table of tables called ``kind`` (``functions`` or ``targets``). Return a dict:
    pattern -> its limits. ``known`` has the names of the allowed limits. ``where`` and ``example``, a
    pattern, are for error messages."""
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{where}: {kind} must be a table of tables, not {value!r}",
            hint=f'for example: [tool.jaxscope.check.{kind}."{example}"]',
            slug="limit-value",
        )
    found = {}
    for pattern, table in value.items():
        place = f'{where} {kind}."{pattern}"'
        if not isinstance(table, Mapping):
            raise UsageError(f"{place} must be a table of limits, not {table!r}", slug="limit-value")
        for name in table:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, 1, 0.5)
                hint = f"did you mean {near[0]}?" if near else f"the options are: {', '.join(known)}"
                if name in SPELLED:
                    hint = f"{name} limits a run, not a program: move it to [tool.jaxscope.check]"
                raise UsageError(f"{place} has no option {name!r}", hint=hint, slug="config-key")
        found[str(pattern)] = of({name: read(name, v, place) for name, v in table.items()})
    return found
