"""Define a pane with a table of any number of items. It draws visible rows only, and can be sorted and
filtered."""

from __future__ import annotations

import contextlib
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.strip import Strip

from jaxscope.present.escape import escape
from jaxscope.tui.actions import bindings
from jaxscope.tui.cells import Column, fitted, plain, unescaped
from jaxscope.tui.lineview import TOLD_S, LineView

T = TypeVar("T")

SLICE = 100  # rows filtered before the time is checked
MEASURED = 60  # rows, from the first, whose cells determine the widths of columns
BAR_SHARE = 0.4  # share of the width that a column with a drawing needs
FILTER_S = 0.01  # seconds of filtering at a time, for which a key may have to wait


class TableView(LineView, Generic[T]):
    """A table that shows one item in each row. When the items change, the cursor stays on its item if that is
    still there; if the cursor was never moved, it stays on the first line. ``ident`` takes an item and
    returns its id, which is unique among the items."""

    BINDINGS: ClassVar[list[Binding]] = bindings("table")
    SCOPES: ClassVar[tuple[str, ...]] = ("table", "lines")

    def __init__(
        self,
        columns: Sequence[Column[T]],
        ident: Callable[[T], str],
        *,
        title: str = "",
        empty: str = "",
        about: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(title=title, empty=empty, about=about, id=id)
        self.columns = tuple(columns)
        self.ident = ident
        self.sorted_by: int | None = None
        self._all: Sequence[T] = ()
        self.items: Sequence[T] = ()
        self._texts: dict[str, str] = {}  # the text that a filter searches, by the id of the item
        self._filtering: Iterator[list[T]] | None = None
        self._filtered_for = ""
        self._kept: list[T] = []  # the matches of the filter in progress
        self._again = False
        self._told = 0.0
        self._version = 0
        self._current: str | None = None
        self._widths: tuple[object, list[tuple[Column[T], int]]] = None, []

    @property
    def line_count(self) -> int:
        return len(self.items)

    @property
    def heading(self) -> int:
        return 1 if any(c.title for c in self.columns) else 0

    @property
    def current(self) -> T | None:
        """Return the item under the cursor; None: the table is empty."""
        return self.items[self.cursor] if 0 <= self.cursor < len(self.items) else None

    def show(self, items: Sequence[T]) -> None:
        """Show ``items`` in the given order, or sorted by a column if the user has chosen one."""
        self._all = items
        self._texts = {}
        self._arrange()

    def select(self, ident: str | None) -> bool:
        """Put the cursor on the item with the id ``ident``. Return False if the table does not show this
        item."""
        for line, item in enumerate(self.items):
            if self.ident(item) == ident:
                self.go_to(line)
                self._current = ident
                return True
        return False

    def _arrange(self) -> None:
        """Filter and sort the items, and keep the cursor on its item. A long filter works in portions of a
        few milliseconds."""
        if not self.needle:
            self._filtering, self._again = None, False
            self._put(self._all)
        elif self._filtering is not None and self._filtered_for == self.needle:
            self._again = True  # the filter in progress has older items: filter again after it
        else:
            self._filtered_for, self._again = self.needle, False
            self._kept = []
            self._filtering = self._filter(self._all, self.needle.lower(), self._texts)
            self._go_on(self._filtering)

    def _filter(self, items: Sequence[T], low: str, texts: dict[str, str]) -> Iterator[list[T]]:
        """Yield which ``items`` have ``low`` in their text, in a list for each SLICE items. ``texts`` keeps
        the texts by item id."""
        for at in range(0, len(items), SLICE):
            kept = []
            for item in items[at : at + SLICE]:
                ident = self.ident(item)
                text = texts.get(ident)
                if text is None:
                    text = texts[ident] = self._text(item)
                if low in text:
                    kept.append(item)
            yield kept

    def _go_on(self, filtering: Iterator[list[T]]) -> None:
        """Continue the filter ``filtering`` for FILTER_S seconds; a timer continues it later if it is not
        finished."""
        if filtering is not self._filtering:
            return
        end = time.monotonic() + FILTER_S
        for kept in filtering:
            self._kept += kept
            if time.monotonic() > end:
                self.set_timer(self.pause(), lambda: self._go_on(filtering))
                if end > self._told + TOLD_S:
                    self._told = end
                    self.post_message(self.Sought(self))
                return
        self._filtering = None
        self._put(self._kept)
        self.post_message(self.Sought(self))
        if self._again:
            self._arrange()

    def _put(self, items: Sequence[T]) -> None:
        """Show ``items``, sorted if the user has chosen a column, and keep the cursor on its item."""
        item = self.current
        before = self.ident(item) if item is not None else self._current
        row = self.cursor - self.scroll_offset.y
        if self.sorted_by is not None:
            items = _sorted(items, self.columns[self.sorted_by])
        self.items = items
        self._version += 1
        self._drawn.clear()
        at = self._line_of(item, before, items)
        if not self.held and items:
            at, row = 0, 0
        if at is not None and at != self.cursor:
            with self.prevent(self.Moved):
                self.cursor = at
            self.fit()
            self.scroll_to(y=max(0, at - row), animate=False, immediate=True)
        else:
            self.fit()
            if at is None:
                self.post_message(self.Moved(self))
        self.refresh()

    def _line_of(self, item: T | None, ident: str | None, items: Sequence[T]) -> int | None:
        """Return the index of ``item`` in ``items``, or else of the item with the id ``ident``. None if
        neither is there."""
        if item is not None:
            with contextlib.suppress(ValueError):
                # Ten times faster than by id, if the object is still the same. list.index is not used: its
                # ValueError contains the repr of the item and so of the run, which takes 0.3 s.
                return operator.indexOf(items, item)
        return next((n for n, i in enumerate(items) if self.ident(i) == ident), None) if ident else None

    def _text(self, item: T) -> str:
        """Return the text of ``item`` that a filter searches: in lower case, and escaped as on the screen."""
        cells = [unescaped(c.cell(item, 80)) for c in self.columns if c.found]
        return escape("  ".join(cells)).lower()

    def watch_cursor(self, before: int, after: int) -> None:
        item = self.current
        self._current = self.ident(item) if item is not None else self._current
        super().watch_cursor(before, after)

    # -- drawing ----------------------------------------------------------------------------------

    def shown(self, width: int) -> list[tuple[Column[T], int]]:
        """Return the columns for which a table of ``width`` characters has room, each with its width in
        characters."""
        key = width, self._version, self.columns
        if self._widths[0] != key:
            self._widths = key, self._fit(width)
        return self._widths[1]

    def _fit(self, width: int) -> list[tuple[Column[T], int]]:
        """Return the columns to show in ``width`` characters, each with its width. A column gets at least its
        stated width, and more if its cells need more and there is room. If space is short, columns with only
        empty cells are omitted."""
        measured = self.items[:MEASURED]
        bar = int(BAR_SHARE * width)
        needs = [
            (c, max((cell_len(plain(c.cell(i, width))) for i in measured), default=0) if c.found else bar)
            for c in self.columns
            if width >= c.wide
        ]
        between = 2 * len(needs)
        if measured and sum(max(c.width, need) for c, need in needs) + between > width:
            needs = [(c, need) for c, need in needs if need or not c.width]
            between = 2 * len(needs)
        free = width - between - sum(c.width or max(len(c.title), need) for c, need in needs)
        fit = []
        for c, need in needs:
            more = max(0, min(need - c.width, free)) if c.width and c.found else 0
            free -= more
            fit.append(c._replace(width=c.width + more))
        fixed = between + sum(c.width for c in fit)
        flexible = [c for c in fit if not c.width]
        each, rest = divmod(max(0, width - fixed), len(flexible)) if flexible else (0, 0)
        made = []
        for c in fit:
            extra = 0
            if not c.width and rest:
                extra, rest = 1, rest - 1
            made.append((c, c.width or max(4, each + extra)))
        return made

    def mark_of(self, line: int) -> object:
        return self._version

    def draw(self, line: int, width: int) -> Strip:
        item = self.items[line]
        segments = [Segment("▸ " if line == self.cursor else "  ")]
        for n, (column, size) in enumerate(self.shown(width)):
            if n:
                segments.append(Segment("  "))
            for text, style in fitted(column.cell(item, size), size, right=column.right):
                segments.append(Segment(text, self.style_of(style)))
        return Strip(segments)

    def draw_heading(self, width: int) -> Strip:
        style: Style = self.style_of("heading")
        segments = [Segment("  ", style)]
        for n, (column, size) in enumerate(self.shown(width)):
            mark = ""
            if self.sorted_by is not None and self.columns[self.sorted_by].title == column.title:
                mark = " ▾" if column.first else " ▴"
            title = fitted(column.title + mark, size, right=column.right)
            segments += [Segment("  " if n else "", style), *(Segment(text, style) for text, _ in title)]
        return Strip(segments)

    def under_cursor(self) -> str:
        """Return the full text of the cells of the current row that are cut on the screen, and the reason for
        each ``?`` in the row. Empty if there is neither."""
        item = self.current
        if item is None:
            return ""
        width = self.scrollable_content_region.width
        found = []
        for column, size in self.shown(width) if width else ():
            text = plain(column.cell(item, size)).strip()
            if column.found and cell_len(text) > size:
                # Not escaped, because the footer escapes what it shows.
                found.append(unescaped(column.cell(item, size)).strip())
            elif text == "?" and column.unknown:
                found.append(f"{column.title} ?: {column.unknown}")
        return " · ".join(found)

    def copied(self, line: int) -> str:
        return "\t".join(plain(c.cell(self.items[line], 200)).strip() for c in self.columns)

    # -- keys -------------------------------------------------------------------------------------

    def search(self, needle: str) -> None:
        self.needle = needle
        self._arrange()

    def nothing(self) -> str:
        if self.needle and self._all:
            return f"No row contains {self.needle!r}. esc shows all {len(self._all):,} rows."
        return super().nothing()

    def position(self) -> str:
        if not self.needle:
            return ""
        if self._filtering is not None:
            return f"{len(self._kept):,} …"
        return f"{len(self.items):,} of {len(self._all):,}"

    def action_sort(self) -> None:
        """Sort by the next column that can be sorted; after the last column, return to the order of
        ``show``."""
        able = [n for n, c in enumerate(self.columns) if c.order is not None]
        following = [n for n in able if self.sorted_by is None or n > self.sorted_by]
        self.sorted_by = following[0] if following else None
        self._arrange()
        self.notify(
            f"sorted by {self.columns[self.sorted_by].title}"
            if self.sorted_by is not None
            else "in the default order",
            timeout=2,
            markup=False,
        )


def _sorted(items: Sequence[T], column: Column[T]) -> list[T]:
    """Return ``items`` sorted by ``column``; items with an unknown value are last in either direction."""
    assert column.order is not None
    values = list(map(column.order, items))
    known = [n for n, value in enumerate(values) if value is not None]
    unknown = [n for n, value in enumerate(values) if value is None]
    known.sort(key=values.__getitem__, reverse=column.first)
    return [items[n] for n in (*known, *unknown)]
