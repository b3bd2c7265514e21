"""A table of any number of items, drawn row by row: sorted, filtered, its cursor on an item and not on a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.strip import Strip

from jaxscope.tui.actions import bindings
from jaxscope.tui.cells import Column, fitted, plain
from jaxscope.tui.lineview import LineView

T = TypeVar("T")


class TableView(LineView, Generic[T]):
    """Shows items in columns.

    When items come, go or move, the cursor stays on its item and the item where it is on the screen.
    """

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
        self._texts: dict[str, str] = {}  # of the filter, by item
        self._version = 0
        self._current: str | None = None

    @property
    def line_count(self) -> int:
        return len(self.items)

    @property
    def heading(self) -> int:
        return 1 if any(c.title for c in self.columns) else 0

    @property
    def current(self) -> T | None:
        """The item under the cursor."""
        return self.items[self.cursor] if 0 <= self.cursor < len(self.items) else None

    def show(self, items: Sequence[T]) -> None:
        """These items now, in their natural order."""
        self._all = items
        self._texts = {}
        self._arrange()

    def select(self, ident: str | None) -> bool:
        """Put the cursor on an item. False: it is not here."""
        for line, item in enumerate(self.items):
            if self.ident(item) == ident:
                self.go_to(line)
                self._current = ident
                return True
        return False

    def _arrange(self) -> None:
        item = self.current
        before = self.ident(item) if item is not None else self._current
        row = self.cursor - self.scroll_offset.y
        items = self._all
        if self.needle:
            low = self.needle.lower()
            items = [i for i in items if low in self._text(i)]
        if self.sorted_by is not None:
            column = self.columns[self.sorted_by]
            items = sorted(items, key=_order(column), reverse=column.first)
        self.items = items
        self._version += 1
        self._drawn.clear()
        at = next((n for n, i in enumerate(items) if self.ident(i) == before), None) if before else None
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

    def _text(self, item: T) -> str:
        ident = self.ident(item)
        text = self._texts.get(ident)
        if text is None:
            text = "\n".join(plain(c.cell(item, 80)) for c in self.columns if c.found).lower()
            self._texts[ident] = text
        return text

    def watch_cursor(self, before: int, after: int) -> None:
        item = self.current
        self._current = self.ident(item) if item is not None else self._current
        super().watch_cursor(before, after)

    # -- drawing ----------------------------------------------------------------------------------

    def shown(self, width: int) -> list[tuple[Column[T], int]]:
        """The columns there is room for, and how wide each is."""
        fit = [c for c in self.columns if width >= c.wide]
        fixed = sum(c.width for c in fit) + 2 * max(0, len(fit) - 1) + 2
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
            if self.sorted_by is not None and self.columns[self.sorted_by] is column:
                mark = " ▾" if column.first else " ▴"
            title = fitted(column.title + mark, size, right=column.right)
            segments += [Segment("  " if n else "", style), *(Segment(text, style) for text, _ in title)]
        return Strip(segments)

    def copied(self, line: int) -> str:
        return "\t".join(plain(c.cell(self.items[line], 200)).strip() for c in self.columns)

    # -- keys -------------------------------------------------------------------------------------

    def look_for(self, needle: str) -> None:
        self.needle = needle
        self._arrange()

    def position(self) -> str:
        return f"/{self.needle}  {len(self.items):,} of {len(self._all):,}" if self.needle else ""

    def action_sort(self) -> None:
        """By the next column that can be sorted by; after the last, in the natural order again."""
        able = [n for n, c in enumerate(self.columns) if c.order is not None]
        following = [n for n in able if self.sorted_by is None or n > self.sorted_by]
        self.sorted_by = following[0] if following else None
        self._arrange()
        self.notify(f"sorted by {self.columns[self.sorted_by].title}" if self.sorted_by is not None else "in its own order", timeout=2, markup=False)  # fmt: skip


def _order(column: Column[Any]) -> Callable[[Any], Any]:
    """What is not known comes last in either direction."""
    order = column.order
    assert order is not None

    def key(item: Any) -> tuple[bool, Any]:
        value = order(item)
        return ((value is None) != column.first, 0 if value is None else value)

    return key
