"""Decide how reports are printed: with or without colors, how wide, and what replaces a character that the
encoding of the stream lacks.

The environment variable NO_COLOR has priority over FORCE_COLOR; if neither is set, only a terminal gets
colors.
"""

from __future__ import annotations

import codecs
import os
import shutil
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console


PLAIN_WIDTH = 80
WIDEST = 120  # longer lines are hard to read

_ASCII = {
    "→": "->",
    "·": "-",
    "…": "...",
    "▸": ">",
    "◂": "<",
    "│": "|",
    "─": "-",
    "●": "*",
    "✓": "ok",
    "µ": "u",
}


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Return (text that replaces the characters that the encoding lacks, where to go on). This is the error
    handler ``jaxscope`` of ``str.encode``: ``→`` becomes ``->``, and a character without a replacement an
    escape such as ``\\u4e2d``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in found), error.end


codecs.register_error("jaxscope", _spell)


def replace_unencodable(stream: TextIO) -> None:
    """Change ``stream`` so that it replaces a character that its encoding lacks (an arrow by ``->``), instead
    of raising UnicodeEncodeError. Use this only for streams of jaxscope's command line, not in the user's
    process."""
    reconfigure: Any = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="jaxscope")


def wants_color(stream: TextIO) -> bool:
    """Return whether text printed to ``stream`` should have ANSI color codes. The environment variable
    NO_COLOR forbids them; otherwise FORCE_COLOR demands them, unless it is 0. In all other cases, return
    whether ``stream`` is a terminal with colors."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return _is_terminal(stream) and os.environ.get("TERM") != "dumb"


def console(stream: TextIO, *, width: int | None = None, color: bool | None = None) -> Console:
    """Return a Rich console for ``stream`` that prints texts as they are: it does not interpret markup or
    emoji codes, and does not highlight anything.

    Args:
      width: the width in characters; None: the width of the terminal (PLAIN_WIDTH if there is none), from 20
        to WIDEST.
      color: whether to use colors; None: ``wants_color`` decides.
    """
    from rich.console import Console  # takes 30 ms, so it is imported late

    color = wants_color(stream) if color is None else color
    return Console(
        file=stream,
        width=width or _width(stream),
        force_terminal=color,
        force_jupyter=False,  # in a notebook Rich would ignore the stream, and display each line separately
        no_color=not color,
        color_system="standard" if color else None,  # the sixteen colors of the terminal's theme
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def _width(stream: TextIO) -> int:
    found = terminal_width(stream)
    return max(20, min(PLAIN_WIDTH if found is None else found, WIDEST))


def terminal_width(stream: TextIO) -> int | None:
    """Return the width of lines on ``stream`` in characters: the environment variable COLUMNS if it is a
    positive number, else the width of the terminal. None if ``stream`` is not a terminal and COLUMNS is not
    set."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns[:6]) > 0:
        return int(columns[:6])
    if _is_terminal(stream):
        try:
            return os.get_terminal_size(stream.fileno()).columns or PLAIN_WIDTH
        except (OSError, ValueError):
            return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    return None


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # the stream is closed, or not a file
        return False
