"""Format ``--help`` for the width of the terminal: paragraphs, tables of examples and options."""

from __future__ import annotations

import argparse
import itertools
import re
import textwrap
from typing import Any

WIDEST = 110  # columns: longer lines are hard to read
_TWO_COLUMNS = re.compile(r"( +)(\S.*?)( {2,})(\S.*)")
INDENT = 6  # of a description below its command, where there is no room beside it


class Help(argparse.HelpFormatter):
    """Formats the help of argparse for the width of the terminal: paragraphs, and tables (indented lines with
    two columns) whose second column is wrapped."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._width = min(self._width, WIDEST)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(filled(text, width))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(" ".join(text.split()), width)


def filled(text: str, width: int) -> list[str]:
    """Return ``text`` as lines, wrapped to ``width`` columns without breaking words. Lines without
    indentation are joined to paragraphs. Indented lines are a table, of which only the second column is
    wrapped."""
    found: list[str] = []
    for kind, lines in itertools.groupby(text.strip("\n").splitlines(), _kind):
        if kind == "paragraph":
            found += _wrapped(" ".join(lines), width)
        elif kind == "table":
            found += _table(list(lines), width)
        else:
            found += lines
    return found


def _kind(line: str) -> str:
    return "" if not line.strip() else "table" if line.startswith(" ") else "paragraph"


def _table(lines: list[str], width: int) -> list[str]:
    """Return the rows ``lines`` of a table with the second column wrapped to ``width``. If this column would
    have less than half of the width in a row that is too long, put it below the first column in all rows."""
    rows = [_TWO_COLUMNS.fullmatch(line) for line in lines]
    starts = [m.start(4) for line, m in zip(lines, rows, strict=True) if m is not None and len(line) > width]
    below = any(at > width // 2 for at in starts)
    found = []
    for line, m in zip(lines, rows, strict=True):
        if m is None:
            found.append(line)
        elif below:
            found.append(f"{m[1]}{m[2]}")
            found += [" " * INDENT + part for part in _wrapped(m[4], width - INDENT)]
        else:
            first, *rest = _wrapped(m[4], width - m.start(4))
            found += [line[: m.start(4)] + first, *(" " * m.start(4) + part for part in rest)]
    return found


def _wrapped(text: str, width: int) -> list[str]:
    # Names of options and files are not broken at dashes, so that they can be copied.
    return textwrap.wrap(text, max(20, width), break_on_hyphens=False, break_long_words=False)
