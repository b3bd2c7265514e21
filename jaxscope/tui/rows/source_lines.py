"""Format the lines of the user's source around one line."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame
from jaxscope.tui.cells import Part, plain

LONGEST = 400  # characters of a source line that are shown
MOST, FEWEST = 15, 3  # source lines that are shown


def around(run: Run, frame: Frame | None, count: int, width: int) -> list[list[Part]]:
    """Return at most ``count`` numbered lines of a source file around the line of ``frame``. A line longer
    than ``width`` characters, with its number, is cut and ends in ``…``. Empty if the file cannot be read or
    has no such line."""
    text = sources.of(run)(frame.file) if frame is not None and count > 0 else None
    if frame is None or text is None:
        return []
    lines = text.split("\n")
    if not 1 <= frame.line <= len(lines):
        return []
    first = max(0, min(frame.line - 1 - count // 2, len(lines) - count))
    shown = lines[first : first + count]
    while shown and not shown[-1].strip():
        shown.pop()
    margin = len(str(first + len(shown)))
    rest = max(1, width - margin - 4)
    return [
        [
            ("▸ " if n == frame.line else "  ", "key"),
            (f"{n:>{margin}}  ", "dim"),
            (_cut(line[:LONGEST].expandtabs(4), rest), "bold" if n == frame.line else ""),
        ]
        for n, line in enumerate(shown, first + 1)
    ]


def room(facts: Sequence[Sequence[Part]], width: int, height: int) -> int:
    """Return how many source lines fit into a pane of ``width`` x ``height`` characters below the lines
    ``facts`` and an empty line. At most MOST; 0 if fewer than FEWEST fit."""
    left = min(MOST, height - lines_needed(facts, width) - 1)
    return left if left >= FEWEST else 0


def lines_needed(facts: Sequence[Sequence[Part]], width: int) -> int:
    """Return how many lines of ``width`` characters the paragraphs ``facts`` need."""
    return sum(_lines(plain(list(fact)), max(1, width)) for fact in facts)


def _lines(text: str, width: int) -> int:
    """Return how many lines of ``width`` characters ``text`` needs when it is wrapped."""
    wide = 1 + max(0, cell_len(text) - 1) // width  # textwrap counts a wide letter as one character
    return max(wide, len(textwrap.wrap(text, width, break_on_hyphens=False)))


def _cut(line: str, room: int) -> str:
    return line if cell_len(line) <= room else set_cell_size(line, room - 1) + "…"
