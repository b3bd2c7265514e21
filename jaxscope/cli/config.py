"""``[tool.jaxscope]`` in pyproject.toml and ``JAXSCOPE_*``: what holds where the command line says nothing.

The order: command line, environment, pyproject, default. Keys are the long options; one table below
says which there are. Knows what an option may be, never what it does.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jaxscope.errors import UsageError

IR = ("none", "stats", "stablehlo", "hlo", "all")


class Option(msgspec.Struct, frozen=True):
    """One key: its type (bool, str, int, list of str) and, where there are few, its choices."""

    type: type
    choices: tuple[str, ...] = ()


# table -> key -> what it may be. The empty table is [tool.jaxscope] itself.
OPTIONS: dict[str, dict[str, Option]] = {
    "": {"wrapper-libraries": Option(list)},
    "run": {
        "out": Option(str),
        "name": Option(str),
        "ir": Option(str, IR),
        "step-function": Option(str),
        "arrays": Option(bool),
        "tui": Option(bool),
        "tee-stderr": Option(bool),
        "live": Option(bool),
        "quiet": Option(bool),
    },
    "keys": {},  # the ids of tui's actions, asked for where the table is there
}

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class Config(msgspec.Struct, frozen=True):
    """What pyproject.toml says. ``path`` is None where there is none with our table in it."""

    path: Path | None
    values: dict[str, dict[str, Any]]

    def get(
        self,
        table: str,
        key: str,
        given: Any = None,
        default: Any = None,
        environ: Mapping[str, str] | None = None,
    ) -> Any:
        """The value of ``key``: as ``given`` on the command line, else JAXSCOPE_KEY, else pyproject, else ``default``.

        Raises:
          UsageError: the environment variable does not hold what the option may be.
        """
        option = OPTIONS[table][key]
        if given is not None:
            return given
        variable = variable_of(key)
        text = (os.environ if environ is None else environ).get(variable)
        if text is not None:
            return _from_text(variable, text, option)
        return self.values.get(table, {}).get(key, default)


def variable_of(key: str) -> str:
    """``JAXSCOPE_STEP_FUNCTION`` for ``step-function``."""
    return "JAXSCOPE_" + key.replace("-", "_").upper()


def load(start: Path | None = None) -> Config:
    """The configuration of the nearest pyproject.toml at or above ``start`` (default: the current directory).

    Raises:
      UsageError: it cannot be read, holds a key that does not exist, or a value of the wrong kind.
    """
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Config(None, {})


def _read(path: Path) -> Config:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise UsageError(f"{path} cannot be read: {e}", slug="config-unreadable") from e
    table = document.get("tool", {}).get("jaxscope") if isinstance(document.get("tool", {}), dict) else None
    if table is None:
        return Config(None, {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.jaxscope is not a table", slug="config-value")
    values: dict[str, dict[str, Any]] = {"": {}}
    tables = [name for name in OPTIONS if name]
    for key, value in table.items():
        if key in tables:
            if not isinstance(value, dict):
                raise UsageError(
                    f"{path}: [tool.jaxscope.{key}] is a table of options, not {value!r}", slug="config-value"
                )
            values[key] = _keys(path, value) if key == "keys" else {k: _checked(path, key, k, v) for k, v in value.items()}  # fmt: skip
        else:
            values[""][key] = _checked(path, "", key, value, tables)
    return Config(path, values)


def _checked(path: Path, table: str, key: str, value: Any, tables: list[str] | None = None) -> Any:
    known = OPTIONS[table]
    where = f"[tool.jaxscope{'.' + table if table else ''}]"
    if key not in known:
        names = [*known, *(tables or [])]
        near = difflib.get_close_matches(key, names, 1, 0.5)
        elsewhere = next((t for t in OPTIONS if key in OPTIONS[t]), None)
        if not near and elsewhere is not None:
            hint = f"{key} belongs into [tool.jaxscope{'.' + elsewhere if elsewhere else ''}]"
        elif near:
            hint = f"did you mean {near[0]}?"
        else:
            hint = f"it knows: {', '.join(names)}"
        raise UsageError(f"{path}: {where} has no option {key!r}", hint=hint, slug="config-key")
    option = known[key]
    good = isinstance(value, option.type) and not (option.type is int and isinstance(value, bool))
    if option.type is list:
        good = good and all(isinstance(v, str) for v in value)
    if not good:
        raise UsageError(
            f"{path}: {where} {key} = {value!r} is not {_KINDS[option.type]}",
            hint=f"for example: {_example(key, option)}",
            slug="config-value",
        )
    if option.choices and value not in option.choices:
        raise UsageError(
            f"{path}: {where} {key} = {value!r}", hint=_one_of(value, option), slug="config-value"
        )
    return value


def _keys(path: Path, table: dict[str, Any]) -> dict[str, str]:
    """``[tool.jaxscope.keys]``: keys of the view by the id of what they do."""
    from jaxscope.tui import actions

    table = _flat(table)
    for id, keys in table.items():
        if not isinstance(keys, str):
            raise UsageError(
                f"{path}: [tool.jaxscope.keys] {id} = {keys!r} is not a text",
                hint='for example: find = "ctrl+f,/"',
                slug="config-value",
            )
    try:
        actions.remapped(table)
    except UsageError as e:
        raise UsageError(f"{path}: [tool.jaxscope.keys] {e.message}", hint=e.hint, slug=e.slug) from e
    return table


def _flat(table: dict[str, Any], above: str = "") -> dict[str, Any]:
    """To TOML ``functions.star = "b"`` is a table in a table; to people it is one name."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found.update(_flat(value, f"{above}{name}.") if isinstance(value, dict) else {above + name: value})
    return found


_KINDS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list of texts",
}


def _example(key: str, option: Option) -> str:
    text = option.choices[-1] if option.choices else "mylib"
    return f"{key} = " + {str: f'"{text}"', bool: "true", int: "3", list: '["mylib"]'}[option.type]


def _one_of(value: str, option: Option) -> str:
    near = difflib.get_close_matches(value, option.choices, 1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"it is one of {', '.join(option.choices)}"


def _from_text(variable: str, text: str, option: Option) -> Any:
    if option.type is bool:
        low = text.strip().casefold()
        if low in _TRUE or low in _FALSE:
            return low in _TRUE
        raise UsageError(
            f"{variable}={text!r} is not true or false",
            hint=f"for example: {variable}=1",
            slug="config-value",
        )
    if option.type is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    if option.choices and text not in option.choices:
        raise UsageError(f"{variable}={text!r}", hint=_one_of(text, option), slug="config-value")
    return text
