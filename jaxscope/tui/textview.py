"""A text of any size: line numbers, colours, search, and marks on the lines that another pane speaks of."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding
from textual.strip import Strip

from jaxscope.report.escape import escape
from jaxscope.tui import tokens
from jaxscope.tui.actions import bindings
from jaxscope.tui.lines import Growing, Lined
from jaxscope.tui.lineview import LineView

NOTHING = Growing()


class TextView(LineView):
    """Shows ``text``; ``linked`` are the lines marked from outside, ``found`` those of the search."""

    BINDINGS: ClassVar[list[Binding]] = bindings("text")
    SCOPES: ClassVar[tuple[str, ...]] = ("text", "lines")

    def __init__(
        self,
        *,
        title: str = "",
        empty: str = "",
        about: str = "",
        numbers: bool = True,
        id: str | None = None,
    ) -> None:
        super().__init__(title=title, empty=empty, about=about, id=id)
        self.text: Lined = NOTHING
        self.spans: tokens.Tokens = tokens.plain
        self.linked: Collection[int] = frozenset()
        self.found: list[int] = []
        self.name_of_text: object = None
        self._numbers = numbers

    @property
    def line_count(self) -> int:
        return len(self.text)

    @property
    def margin_columns(self) -> int:
        """Columns before the text: a mark, and the line number."""
        return (len(str(max(1, self.line_count))) + 3) if self._numbers else 2

    def show(self, text: Lined, spans: tokens.Tokens = tokens.plain, *, name: object = None) -> None:
        """Another text; with the same ``name`` as before, cursor and scrolling stay."""
        same = name is not None and name == self.name_of_text
        self.text, self.spans, self.name_of_text = text, spans, name
        self.linked = frozenset()
        self.found = text.find(self.needle) if self.needle else []
        self.fit(self.text.longest + self.margin_columns)
        if not same:
            self.cursor = 0 if self.line_count else -1
            self.scroll_to(0, 0, animate=False, immediate=True)
        self.forget()

    def grown(self) -> None:
        """There are more lines at the end of the same text."""
        self.fit(self.text.longest + self.margin_columns)
        if self.needle:
            self.found = self.text.find(self.needle)
        self.forget()

    def link(self, lines: Collection[int], *, follow: bool = True) -> None:
        """Mark these lines, and bring the first into sight without moving the cursor away from them."""
        self.linked = lines
        if lines and follow and self.cursor not in lines:
            first = min(lines)
            with self.prevent(self.Moved):
                self.cursor = first
            self.reveal(first, centre=not self._seen(first))
        self.forget()

    def _seen(self, line: int) -> bool:
        return self.scroll_offset.y <= line < self.scroll_offset.y + max(1, self.size.height)

    def mark_of(self, line: int) -> object:
        return (line in self.linked, self.needle)

    def copied(self, line: int) -> str:
        return self.text[line]

    def draw(self, line: int, width: int) -> Strip:
        mark = "▸" if line == self.cursor else "┃" if line in self.linked else " "
        gutter = mark + (f"{line + 1:>{self.margin_columns - 2}} " if self._numbers else " ")
        style = "linked" if line in self.linked else "gutter"
        text = escape(self.text[line].expandtabs(4))
        x = self.scroll_offset.x
        body = Strip(self._segments(text, line)).crop(x, x + max(0, width - len(gutter)))
        return Strip([Segment(gutter, self.style_of(style)), *body])

    def _segments(self, text: str, line: int) -> list[Segment]:
        """The text cut where a colour or a match begins or ends."""
        spans = self.spans(text)
        hits = list(tokens.matches(text, self.needle))
        if not hits:
            made, at = [], 0
            for begin, end, kind in spans:
                if begin > at:
                    made.append(Segment(text[at:begin]))
                made.append(Segment(text[begin:end], self.style_of(kind)))
                at = end
            return [*made, Segment(text[at:])]
        kinds = [""] * len(text)
        for begin, end, kind in spans:
            kinds[begin:end] = [kind] * (end - begin)
        for begin, end in hits:
            kinds[begin:end] = ["match"] * (end - begin)
        made, at = [], 0
        for n in range(1, len(text) + 1):
            if n == len(text) or kinds[n] != kinds[at]:
                made.append(Segment(text[at:n], self.style_of(kinds[at])))
                at = n
        return made

    # -- searching --------------------------------------------------------------------------------

    def look_for(self, needle: str) -> None:
        self.needle = needle
        self.found = self.text.find(needle)
        if self.found and self.cursor not in self.found:
            self.go_to(self.found[bisect_left(self.found, self.cursor) % len(self.found)])
        self.forget()

    def position(self) -> str:
        """``/dot  3/412``: what is searched and where we are in it."""
        if not self.needle:
            return ""
        at = bisect_right(self.found, self.cursor)
        return f"/{self.needle}  {at}/{len(self.found):,}" if self.found else f"/{self.needle}  not found"

    def action_next_match(self, by: int) -> None:
        if not self.found:
            return
        at = bisect_right(self.found, self.cursor) if by > 0 else bisect_left(self.found, self.cursor) - 1
        self.go_to(self.found[at % len(self.found)])

    def action_next_linked(self, by: int) -> None:
        """The next line that the other pane's line made."""
        lines = sorted(self.linked)
        if lines:
            at = bisect_right(lines, self.cursor) if by > 0 else bisect_left(lines, self.cursor) - 1
            with self.prevent(self.Moved):  # the marks stay while one walks along them
                self.go_to(lines[at % len(lines)])
            self.refresh()
