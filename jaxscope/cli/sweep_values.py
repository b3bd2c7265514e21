"""Parse ``jaxscope run --vary NAME=a,b``, and put the values into the program's environment or command
line."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from jaxscope.errors import UsageError
from jaxscope.launch.command import Command

MOST = 64  # executions, one after the other: more are probably a typing error
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLAG = re.compile(r"-[^\s=,'\"-][^\s=,'\"]*|--[^\s=,'\"-][^\s=,'\"]*")
_SHORT = re.compile(r"-[A-Za-z0-9]")
_NUMBER = re.compile(r"-\.?\d")
_HINT = (
    "--vary 'MESH=64x4,32x8' varies the environment variable, --vary '--mesh=64x4,32x8' the script's own flag"
)


class Setting(NamedTuple):
    """A value of an environment variable (``MESH=64x4``), or of a flag of the script (``--mesh=64x4``). The
    name of a flag begins with a dash."""

    name: str
    value: str

    @property
    def is_flag(self) -> bool:
        return self.name.startswith("-")


def settings(words: Sequence[str]) -> list[list[Setting]]:
    """Return all combinations of the values of the ``--vary`` options ``words``. The last option varies
    fastest.

    ``["A=1,2", "B=3"]`` -> ``[[A=1, B=3], [A=2, B=3]]``, each a list of ``Setting``. Without ``--vary``,
    return one empty combination: ``[[]]``.

    Raises:
      UsageError: a word is not NAME=VALUES, a name is given twice, or there are more than ``MOST``
        combinations.
    """
    axes = [_axis(word) for word in words]
    names = [axis[0].name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"--vary {name} is given {names.count(name)} times",
                hint=f"--vary '{name}=a,b,c'",
                slug="usage",
            )
    runs = math.prod(len(axis) for axis in axes)
    if runs > MOST:
        raise UsageError(
            f"--vary needs {' x '.join(str(len(axis)) for axis in axes)} = {runs:,} runs,"
            f" more than the limit of {MOST}",
            hint="give fewer values",
            slug="usage",
        )
    return [list(each) for each in itertools.product(*axes)]


def _axis(word: str) -> list[Setting]:
    """Return the settings of one ``--vary``, each value once: ``A=1,2`` -> ``[A=1, A=2]``.

    Raises:
      UsageError: the word is not NAME=VALUES, or the name begins with JAXSCOPE.
    """
    name, equals, rest = word.partition("=")
    if not equals:
        raise UsageError(f"--vary {word!r} has no values", hint=_HINT, slug="usage")
    if not (_FLAG.fullmatch(name) or _VARIABLE.fullmatch(name)):
        raise UsageError(
            f"--vary {name!r} is neither an environment variable nor a flag", hint=_HINT, slug="usage"
        )
    if name.startswith("JAXSCOPE"):
        raise UsageError(
            f"--vary {name}: this variable configures jaxscope, not the script", hint=_HINT, slug="usage"
        )
    return [Setting(name, value) for value in dict.fromkeys(values(rest))]


def values(text: str) -> list[str]:
    r"""Split a text at its commas: ``64x4,'1,2',3\,4`` -> ``["64x4", "1,2", "3,4"]``. A comma in quotes or
    after a backslash belongs to the value.

    Raises:
      UsageError: an empty value that is not written as ``''``, or a quote that is not closed.
    """
    found: list[str] = []
    at = 0
    while True:
        value, at = _value(text, at)
        found.append(value)
        if at >= len(text):
            return found
        at += 1  # the comma


def _value(text: str, at: int) -> tuple[str, int]:
    """Return (the value that begins at position ``at`` of ``text``, the position after it): ``("a,b", 0)`` ->
    ``("a", 1)``. At this position is a comma, or the end of the text.

    Raises:
      UsageError: the value is empty and not written as ``''``, or a quote is not closed.
    """
    quote = text[at : at + 1]
    if quote and quote in "'\"":
        end = text.find(quote, at + 1)
        if end < 0:
            raise UsageError(f"--vary: {text[at:]!r} has no closing {quote}", hint=_HINT, slug="usage")
        if text[end + 1 : end + 2] in ("", ","):
            return text[at + 1 : end], end + 1
    value = ""
    while at < len(text) and text[at] != ",":
        if text[at] == "\\" and text[at + 1 : at + 2] in (",", "\\"):
            at += 1
        value += text[at]
        at += 1
    if not value:
        raise UsageError(
            f"--vary: an empty value in {text!r}", hint="an empty value is written ''", slug="usage"
        )
    return value, at


def program(command: Command, chosen: Sequence[Setting]) -> Command:
    """Return the command line ``command`` with the flags among ``chosen``. A flag replaces the last
    occurrence of the same flag in ``command``, or is appended (before ``--``): ``train.py --mesh=8`` ->
    ``train.py --mesh=4``."""
    first = 2 if command.words[0] in ("-m", "-c") else 1
    words, arguments = command.words[:first], command.words[first:]
    for setting in chosen:
        if setting.is_flag:
            arguments = _with_flag(arguments, setting)
    return Command([*words, *arguments])


def _with_flag(arguments: list[str], setting: Setting) -> list[str]:
    name, value = setting
    end = arguments.index("--") if "--" in arguments else len(arguments)
    # getopt and click parse -b=32 as the value "=32".
    spelled = [name, value] if _SHORT.fullmatch(name) else [f"{name}={value}"]
    for at in reversed(range(end)):  # the last one counts, for every parser of flags
        word = arguments[at]
        if word.startswith(f"{name}="):
            return [*arguments[:at], f"{name}={value}", *arguments[at + 1 :]]
        if word == name:
            taken = at + 1 < end and (
                not arguments[at + 1].startswith("-") or _NUMBER.match(arguments[at + 1])
            )
            if taken:
                return [*arguments[: at + 1], value, *arguments[at + 2 :]]
            return [*arguments[:at], *spelled, *arguments[at + 1 :]]
    return [*arguments[:end], *spelled, *arguments[end:]]


def environment(chosen: Sequence[Setting]) -> dict[str, str]:
    """Return the settings in ``chosen`` that are environment variables, as name -> value; flags are
    omitted."""
    return {s.name: s.value for s in chosen if not s.is_flag}


def joined(words: Sequence[str]) -> list[str]:
    """Return ``words`` with ``--vary`` joined to the word after it: ``["--vary", "--mesh=a,b"]`` ->
    ``["--vary=--mesh=a,b"]``."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--vary":
            joined[-1] = f"--vary={word}"  # else argparse would take the word for an option of jaxscope
        else:
            joined.append(word)
    return joined
