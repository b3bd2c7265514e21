"""Read the configuration: values of options that the command line does not give.

The order is: command line, environment (``JAXSCOPE_*``), ``[tool.jaxscope]`` in pyproject.toml, default. Keys
are the names of the long options without dashes in front; ``OPTIONS`` lists them.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jaxscope.check import limits
from jaxscope.errors import UsageError
from jaxscope.log import files, store

FORMATS = ("concise", "full", "json", "github", "gitlab", "sarif", "junit", "markdown")
MAX_BYTES = 4_000_000  # the largest pyproject.toml that is read


class Option(msgspec.Struct, frozen=True):
    """One option that the configuration may set, and the values that it may have.

    Attributes:
      type: bool, str, int, list (of str) or dict (a table); object if ``read`` checks the value.
      choices: the allowed values, if there are few.
      least: the smallest allowed number.
      read: ``read(key, value, where)`` checks and converts a value in a special format. ``where`` names the
        file or option that has the value, for error messages. None: the other attributes are enough to check
        the value.
    """

    type: type
    choices: tuple[str, ...] = ()
    least: int | None = None
    read: Callable[[str, Any, str], Any] | None = None


# table -> key -> option. The empty name is [tool.jaxscope] itself.
OPTIONS: dict[str, dict[str, Option]] = {
    "": {"wrapper-libraries": Option(list)},
    "run": {
        "out": Option(str),
        "name": Option(str),
        "job": Option(str),
        "ir": Option(str, store.IR_CHOICES),
        "step-function": Option(str),
        "arrays": Option(bool),
        "transfers": Option(bool),
        "line-times": Option(bool),
        "redact": Option(bool),
        "tui": Option(bool),
        "target": Option(list),
        "wait-targets": Option(bool),
        "tee-stderr": Option(bool),
        "live": Option(bool),
        "compare-ranks": Option(bool),
        "ranks-patience": Option(int, least=1),
        "stop-on-divergence": Option(bool),
        "quiet": Option(bool),
        "check": Option(str),
    },
    "check": {
        "no-recompiles-after": Option(int, least=0),
        "allow-cache-hits": Option(bool),
        "strict": Option(bool),
        "target": Option(list),
        "baseline": Option(str),
        "select": Option(list),
        "ignore": Option(list),
        "per-file-ignores": Option(dict, read=lambda _, value, where: _codes_by_file(value, where)),
        "output-format": Option(str, FORMATS),
        **{name: Option(object, read=limits.read) for name in limits.SPELLED},
        "functions": Option(dict, read=lambda _, value, where: limits.functions(value, where)),
        "targets": Option(dict, read=lambda _, value, where: limits.targets(value, where)),
    },
    "keys": {},  # keys of the terminal interface, by the id of their action; ``_keys`` reads them
}

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class Config(msgspec.Struct, frozen=True):
    """The options in pyproject.toml.

    Attributes:
      path: the file; None if there is no pyproject.toml with a table ``[tool.jaxscope]``.
      values: table -> key -> value; the empty name is the table ``[tool.jaxscope]`` itself.
    """

    path: Path | None
    values: dict[str, dict[str, Any]]

    def get(
        self,
        table: str,
        key: str,
        command_line_value: Any = None,
        default: Any = None,
        environ: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the value of an option: the first that exists of ``command_line_value``, its environment
        variable (unless its value is a table), its value in pyproject.toml, and ``default``.

        Args:
          table: the name of the option's table, such as ``check``; empty for ``[tool.jaxscope]`` itself.
          key: the name of the option, such as ``no-recompiles-after``.
          command_line_value: the value on the command line; None: not given.
          environ: the environment variables; None: those of this process.

        Raises:
          UsageError: the value of the environment variable is not allowed.
        """
        option = OPTIONS[table][key]
        if command_line_value is not None:
            return command_line_value
        variable = variable_of(key)
        text = (os.environ if environ is None else environ).get(variable)
        if text is not None and option.type is not dict:
            return _from_text(variable, text, option, key)
        return self.values.get(table, {}).get(key, default)


def variable_of(key: str) -> str:
    """Return the name of the environment variable of an option: ``step-function`` ->
    ``JAXSCOPE_STEP_FUNCTION``."""
    return "JAXSCOPE_" + key.replace("-", "_").upper()


def load(start: Path | None = None) -> Config:
    """Return the configuration in the first pyproject.toml found in ``start`` (default: the current
    directory) or above. Empty if there is none, or if it has no table ``tool.jaxscope``.

    Raises:
      UsageError: the file cannot be read, has an unknown key, or has a value that is not allowed.
    """
    here = store.here() / (start or "")
    for folder in (here, *here.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Config(None, {})


def _read(path: Path) -> Config:
    try:
        document = tomllib.loads(files.read(path, MAX_BYTES).decode("utf-8"))
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as e:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
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
            if key == "keys":
                values[key] = _keys(path, value)
            else:
                values[key] = {k: _checked(path, key, k, v) for k, v in value.items()}
        else:
            values[""][key] = _checked(path, "", key, value, tables)
    return Config(path, values)


def _checked(path: Path, table: str, key: str, value: Any, tables: list[str] | None = None) -> Any:
    """Return ``value``, the value of the option ``key`` in pyproject.toml (``path``), converted by
    ``Option.read`` if the option has this function. ``table`` is the option's table; ``tables``, further
    names that the hint may suggest.

    Raises:
      UsageError: there is no such option, or the value is not allowed.
    """
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
            hint = f"the options are: {', '.join(names)}"
        raise UsageError(f"{path}: {where} has no option {key!r}", hint=hint, slug="config-key")
    option = known[key]
    if option.read is not None:
        return option.read(key, value, f"{path}: {where}")
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
    if option.least is not None and value < option.least:
        raise UsageError(
            f"{path}: {where} {key} = {value!r} is less than {option.least}", slug="config-value"
        )
    return value


def _codes_by_file(value: Any, where: str) -> dict[str, list[str]]:
    good = isinstance(value, dict) and all(
        isinstance(codes, list) and all(isinstance(c, str) for c in codes) for codes in value.values()
    )
    if not good:
        raise UsageError(
            f"{where} per-file-ignores = {value!r} is not a table of lists",
            hint='for example: per-file-ignores = {"data/*.py" = ["JX101"]}',
            slug="config-value",
        )
    return dict(value)


def _keys(path: Path, table: dict[str, Any]) -> dict[str, str]:
    """Check ``table``, the table ``[tool.jaxscope.keys]`` with the user's keys for the terminal interface.
    Return a dict: action -> keys, such as ``{"find": "ctrl+f,/"}``.

    Args:
      path: the file with the table, for error messages.
      table: the table as TOML has it.

    Raises:
      UsageError: the table is not allowed, for example because there is no such action.
    """
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
    """Join the names of nested tables with dots: ``{"functions": {"star": "b"}}`` -> ``{"functions.star":
    "b"}``. TOML reads ``functions.star = "b"`` as nested. ``above`` is the prefix for all names."""
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


def check_spec(text: str) -> dict[str, Any]:
    """Parse the value of ``--check`` to options with the names of [tool.jaxscope.check]:
    ``no-recompiles-after=2,max-collectives.all-gather=2,strict`` -> ``{"no-recompiles-after": 2,
    "max-collectives": {"all-gather": 2}, "strict": True}``. An option that is true or false may have no
    value, which means true; a dot separates the name of a table from the name of its entry.

    Raises:
      UsageError: a name is unknown, a value is not allowed, or nothing is named.
    """
    known = {name: o for name, o in OPTIONS["check"].items() if o.type is not dict}
    found: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (w.strip() for w in part.partition("="))
        name, _, inner = name.partition(".")
        where = f"--check {part}"
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"the options are: {', '.join(known)}"
            raise UsageError(f"--check has no option {name!r}", hint=hint, slug="config-key")
        option = known[name]
        if not equals and option.type is not bool:
            raise UsageError(f"{where}: {name} needs a value", hint=f"{name}=...", slug="config-value")
        if option.read is not None:
            read = option.read(name, {inner: value} if inner else value, where)
            before = found.get(name)
            found[name] = {**before, **read} if inner and isinstance(before, dict) else read
        elif inner:
            raise UsageError(
                f"{where}: {name} is not a table and has no options of its own", slug="config-value"
            )
        else:
            read = _from_text(where, value if equals else "true", option)
            found[name] = [*found.get(name, ()), *read] if option.type is list else read
    if not found:
        raise UsageError(
            "--check names nothing to check",
            hint="for example: --check no-recompiles-after=2",
            slug="config-value",
        )
    return found


def _from_text(variable: str, text: str, option: Option, key: str = "") -> Any:
    """Parse ``text``, the value of ``option`` in an environment variable or in ``--check``: ``"1"`` -> True,
    ``"a, b"`` -> ``["a", "b"]`` for a list. ``variable`` says in the error where the value is.

    Raises:
      UsageError: the value is not allowed.
    """
    if option.read is not None and option.type is not dict:
        return option.read(key, text, variable)
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
    if option.type is int:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or (option.least is not None and value < option.least):
            least = f" of at least {option.least}" if option.least is not None else ""
            raise UsageError(f"{variable}: {text!r} is not a whole number{least}", slug="config-value")
        return value
    if option.choices and text not in option.choices:
        raise UsageError(f"{variable}={text!r}", hint=_one_of(text, option), slug="config-value")
    return text
