"""Lines of text with an indent, and printing them to a console. All text reports consist of these lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jaxscope.present.escape import escape
from jaxscope.present.spans import Span

# Role of a piece of text -> Rich style; roles without an entry have no style.
_STYLES = {
    "dim": "dim", "bold": "bold", "title": "underline", "name": "bold", "figure": "bold", "path": "dim",
    "error": "bold red", "warning": "yellow", "note": "dim", "good": "green", "retrace": "yellow",
    "collective": "bold", "before": "red", "after": "green",
}  # fmt: skip

# A number and its unit, "6.9 s", stay on one line, and so do a sign and what follows it, "- 2.0 KiB",
# "line 3" and "library function". Rich breaks lines at every white space, also at a no-break space, so while
# lines are broken a private character of the same width replaces this space.
_GLUE = "\ue000"
FIGURE = re.compile(r"(?<=\d) (?=(?:s|ms|µs|min|h|%|B|[KMGT]iB)\b|%)")
_BOUND = re.compile(r"(?<=\s[-+=]) (?=\w)|(?<=\bline) (?=\d)|(?<=\blibrary) (?=function)")


class Line(NamedTuple):
    """One paragraph of a text report. When it is printed, it is wrapped to the console's width.

    Attributes:
      text: the text with its styles.
      indent: number of spaces before each printed line of the paragraph.
      hang: number of further spaces before the second and all later printed lines.
      right: a text that is printed at the right edge; None: there is none.
      cells: the cells of the row, without the spaces that align them, if the paragraph is a row of a table;
        else empty.
      whole: whether the paragraph is printed as one line, however long, such as a command to copy.
    """

    text: Text
    indent: int = 0
    hang: int = 0
    right: Text | None = None
    cells: tuple[str, ...] = ()
    whole: bool = False


BLANK = Line(Text())


def line(*spans: Span, indent: int = 0, hang: int = 0, right: Span | None = None) -> Line:
    """Return a line of a report from pieces of text: ``line("took ", ("6.9 s", "bold"))``. Control characters
    are escaped, and nothing is interpreted as markup.

    Args:
      spans: the pieces. Each is a text, or a pair of text and role; a role (``bold``, ``dim``, ``error``,
        ...) becomes a color or style.
      indent: number of spaces before the line.
      hang: number of further spaces before the second and later parts of a line that is wrapped.
      right: a piece that is printed at the right edge; None: there is none.
    """
    return Line(text(*spans), indent, hang, None if right is None else text(right))


def text(*spans: Span) -> Text:
    """Return pieces of text as one Rich text, with control characters escaped and roles as styles (see
    ``line``)."""
    styled = Text()
    for span in spans:
        content, role = (span, "") if isinstance(span, str) else span
        styled.append(escape(content), _STYLES.get(role, ""))
    return styled


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells of one row of a table as a text, each padded to the width of its column in characters.
    Columns of width 0 are left out. ``row`` may have fewer cells than the table has columns."""
    cells = zip(row, widths, strict=False)
    return "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in cells if width).rstrip()


def filled_cells(row: Sequence[str], widths: Sequence[int]) -> tuple[str, ...]:
    """Return the cells of one row of a table without those in columns of width 0, which are empty in all
    rows."""
    return tuple(cell for cell, width in zip(row, widths, strict=True) if width)


def put(console: Console, lines: Iterable[Line]) -> None:
    """Print ``lines`` to ``console``, each wrapped to the width of the console. A number and its unit stay on
    one line."""
    for item in lines:
        room = max(8, console.width - item.indent)
        if not item.text.plain and item.right is None:
            console.print()
            continue
        if item.whole:
            console.print(Text.assemble(" " * item.indent, item.text), soft_wrap=True)
            continue
        body = item.text.copy()
        body.plain = _BOUND.sub(_GLUE, FIGURE.sub(_GLUE, body.plain))
        right = cell_len(item.right.plain) + 2 if item.right is not None else 0
        first, rest = _split(console, body, max(8, room - right))
        if item.right is not None:
            gap = room - cell_len(first.plain) - cell_len(item.right.plain)
            first = Text.assemble(first, " " * max(2, gap), item.right)
        _print(console, first, item.indent)
        if rest.plain:
            for part in rest.wrap(console, max(8, room - item.hang)):
                part.rstrip()
                _print(console, part, item.indent + item.hang)


def _split(console: Console, body: Text, room: int) -> tuple[Text, Text]:
    """Return the beginning of ``body`` that fits into ``room`` character cells of the console, and the rest
    of ``body``."""
    if cell_len(body.plain) <= room:
        return body, Text()
    first = body.wrap(console, room)[0]
    first.rstrip()
    rest = body[len(first) :]
    return first, rest[len(rest) - len(rest.plain.lstrip(" ")) :]


def _print(console: Console, text: Text, indent: int) -> None:
    text.plain = text.plain.replace(_GLUE, " ")
    console.print(Padding(text, (0, 0, 0, indent), expand=False))
