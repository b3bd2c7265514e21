"""Define styled text, and the columns of tables.

A styled text is a list of parts: plain strings, and pairs (text, name of a style in ``style.CSS``). The theme
defines the color of each style. The text of a cell is not escaped; widgets draw it with ``parts``, ``plain``
and ``fitted``, which escape it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size

from jaxscope.present import spans
from jaxscope.present.escape import escape
from jaxscope.present.spans import Span

Part = Span  # a text, or a pair of text and style


class Button(NamedTuple):
    """A text that can be clicked. ``action`` is the Textual action that a click runs, with the object that
    performs it: ``app.show('overview')``."""

    parts: list[Part]
    action: str


Cell = str | list[Part]

T = TypeVar("T")
V = TypeVar("V")


class Column(NamedTuple, Generic[T]):
    """One column of a table of items of type T.

    Attributes:
      cell: returns the text of a cell, from the item and the width of the column in characters.
      width: least width in characters; 0: the remaining width, divided among all columns with width 0.
      right: whether the text is aligned to the right.
      order: returns the number or text of an item by which the table is sorted; None: the table cannot be
        sorted by this column.
      first: whether the largest value comes first when the table is sorted by this column.
      wide: the column is shown only if the table is at least this many characters wide; 0: always.
      found: whether a filter searches this column.
      unknown: why a cell is ``?``; shown in the footer while the cursor is on a row with such a cell.
    """

    title: str
    cell: Callable[[T, int], Cell]
    width: int = 0
    right: bool = False
    order: Callable[[T], Any] | None = None
    first: bool = False
    wide: int = 0
    found: bool = True
    unknown: str = ""


def number_column(
    title: str,
    value: Callable[[T], V],
    text: Callable[[V], Cell],
    width: int,
    *,
    wide: int = 0,
    unknown: str = "",
) -> Column[T]:
    """Return a column of numbers, aligned to the right and sorted with the largest number first. ``title``,
    ``width``, ``wide`` and ``unknown`` are those of ``Column``.

    Args:
      value: takes an item and returns its number, or something else that can be sorted.
      text: takes the result of ``value`` and returns the text of the cell.
    """
    return Column(
        title,
        lambda item, _: text(value(item)),
        width,
        right=True,
        order=value,
        first=True,
        wide=wide,
        unknown=unknown,
    )


def parts(cell: Cell) -> list[tuple[str, str]]:
    """Return the parts of ``cell``, a styled text, as pairs (escaped text, name of the style). The style is
    empty for plain text."""
    if isinstance(cell, str):
        return [(escape(cell), "")]
    return [(escape(p), "") if isinstance(p, str) else (escape(p[0]), p[1]) for p in cell]


def plain(cell: Cell) -> str:
    """Return the escaped text of ``cell`` without styles."""
    return "".join(text for text, _ in parts(cell))


def unescaped(cell: Cell) -> str:
    """Return the text of ``cell`` without styles, not escaped."""
    return cell if isinstance(cell, str) else spans.plain(cell)


def fitted(cell: Cell, width: int, *, right: bool = False) -> list[tuple[str, str]]:
    """Return ``cell``, a styled text, as pairs (escaped text, name of the style) that fill exactly ``width``
    terminal columns. A longer text is cut and ends in ``…``. A shorter one gets spaces after it, or with
    ``right`` before it."""
    made: list[tuple[str, str]] = []
    left = width
    all_parts = parts(cell)
    total = sum(cell_len(text) for text, _ in all_parts)
    if right and total < width:
        made.append((" " * (width - total), ""))
        left = total
    for text, style in all_parts:
        size = cell_len(text)
        if size <= left and not (size == left and total > width):
            made.append((text, style))
            left -= size
            continue
        if left > 0:
            made.append((set_cell_size(text, left - 1) + "…", style))
        left = 0
        break
    if left > 0:
        made.append((" " * left, ""))
    return made
