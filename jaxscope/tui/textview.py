"""Define a pane with a text of any size: line numbers, colors, search, and marks on lines linked to another
pane."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding
from textual.strip import Strip

from jaxscope.present.escape import escape
from jaxscope.tui import tokens
from jaxscope.tui.actions import bindings
from jaxscope.tui.lines import MOST_MATCHES, Growing, Lined
from jaxscope.tui.lineview import TOLD_S, LineView

NOTHING = Growing()
SEARCH_S = 0.01  # seconds of searching at a time, for which a key may have to wait


class TextView(LineView):
    """A pane that shows a text.

    Attributes:
      spans: a function that takes a line and returns its colored parts, as (start, end, name of the color).
      linked: the numbers of the lines that are marked because they correspond to the current line of another
        pane.
      found: the numbers of the lines that the search has found so far, in ascending order.
    """

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
        self._search: Iterator[list[int]] | None = None  # the search in progress
        self._looked = self._dropped = 0  # number of lines searched; lines that the text had dropped then
        self._told = 0.0
        self._wanted = False  # whether the cursor is still to move to the first match
        self.name_of_text: object = None
        self._numbers = numbers

    @property
    def line_count(self) -> int:
        return len(self.text)

    @property
    def margin_columns(self) -> int:
        """Return the number of characters before the text, for the mark and the line number."""
        return (len(str(max(1, self.line_count))) + 3) if self._numbers else 2

    def show(self, text: Lined, spans: tokens.Tokens = tokens.plain, *, name: object = None) -> None:
        """Show ``text`` instead of the previous text.

        Args:
          spans: a function that takes a line and returns its colored parts, as (start, end, name of the
            color).
          name: if it is not None and equals the name of the previous text, the cursor and the scroll position
            stay.
        """
        same = name is not None and name == self.name_of_text
        self.text, self.spans, self.name_of_text = text, spans, name
        self.linked = frozenset()
        self.fit(self.text.longest + self.margin_columns)
        self._seek()
        if not same:
            self.cursor = 0 if self.line_count else -1
            self.scroll_to(0, 0, animate=False, immediate=True)
        self.forget()

    def grown(self) -> None:
        """Show lines that were added at the end of the text."""
        self.fit(self.text.longest + self.margin_columns)
        if self.needle and self._search is None:
            self._seek(more=True)
        self.forget()

    def link(self, lines: Collection[int], *, follow: bool = True) -> None:
        """Mark ``lines``, which correspond to the current line of another pane; earlier marks are removed.
        With ``follow``, move the cursor to the first of ``lines``, unless the cursor is on one of them."""
        changed = {*lines} ^ {*self.linked}
        self.linked = lines
        top = self.scroll_offset.y
        self.redraw(*(n for n in range(top, top + self.size.height) if n in changed))
        if lines and follow and self.cursor not in lines:
            first = min(lines)
            with self.prevent(self.Moved):
                self.cursor = first
            self.reveal(first, center=not self._seen(first))
            # A text that was just loaded cannot be scrolled before it is laid out.
            self.call_after_refresh(self._again, first)

    def _again(self, line: int) -> None:
        """Scroll to ``line`` if the cursor is on it and it is not visible."""
        if self.cursor == line and not self._seen(line):
            self.reveal(line, center=True)

    def _seen(self, line: int) -> bool:
        """Return whether ``line`` is visible."""
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
        body = Strip(self._segments(text)).crop(x, x + max(0, width - len(gutter)))
        return Strip([Segment(gutter, self.style_of(style)), *body])

    def _segments(self, text: str) -> list[Segment]:
        """Return the text as segments, divided where a color or a match of the search begins or ends."""
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

    def search(self, needle: str) -> None:
        self.needle = needle
        self._wanted = bool(needle)
        self._seek()
        self.forget()

    def _seek(self, *, more: bool = False) -> None:
        """Start a new search, from the first line. With ``more``, keep the matches, and search only the last
        line that was searched before and the lines after it; if old lines were dropped meanwhile, search all
        lines again."""
        first = 0
        if more and self._dropped == getattr(self.text, "dropped", 0):
            first = max(0, self._looked - 1)  # the last line may have been incomplete
            del self.found[bisect_left(self.found, first) :]
        else:
            self.found = []
        self._dropped, self._looked = getattr(self.text, "dropped", 0), self.line_count
        self._search = self.text.search(self.needle, first) if self.needle else None
        self._go_on(self._search)

    def _go_on(self, search: Iterator[list[int]] | None) -> None:
        """Continue ``search`` for SEARCH_S seconds; a timer continues it later if it is not finished.
        ``search`` yields numbers of matching lines; None: there is nothing to search for."""
        if search is None or search is not self._search:
            return
        end = time.monotonic() + SEARCH_S
        for found in search:
            self.found += found[: MOST_MATCHES - len(self.found)]
            if time.monotonic() > end and len(self.found) < MOST_MATCHES:
                self.set_timer(self.pause(), lambda: self._go_on(search))
                break
            if len(self.found) >= MOST_MATCHES:
                self._search = None
                break
        else:
            self._search = None
        if self._wanted and self.found and (self._search is None or self.found[-1] >= self.cursor):
            self._wanted = False
            at = bisect_left(self.found, self.cursor)
            if at == len(self.found) or self.found[at] != self.cursor:
                self.go_to(self.found[at % len(self.found)])
        if self._search is None or end > self._told + TOLD_S:
            self._told = end
            self.post_message(self.Sought(self))

    def position(self) -> str:
        """Return the position among the matches of the search, as ``3/412``, or ``not found``. While the
        search continues, the text ends in ``…``. Empty without a search."""
        if not self.needle:
            return ""
        at = bisect_right(self.found, self.cursor)
        if not self.found:
            return "not found" if self._search is None else "…"
        return f"{at}/{len(self.found):,}" + ("" if self._search is None else "…")

    def action_next_match(self, by: int) -> None:
        if not self.found:
            return
        at = bisect_right(self.found, self.cursor) if by > 0 else bisect_left(self.found, self.cursor) - 1
        self.go_to(self.found[at % len(self.found)])

    def action_next_linked(self, by: int) -> None:
        """Go to the next marked line, or to the previous one if ``by`` is negative. After the last one comes
        the first."""
        lines = sorted(self.linked)
        if lines:
            at = bisect_right(lines, self.cursor) if by > 0 else bisect_left(lines, self.cursor) - 1
            with self.prevent(self.Moved):  # otherwise the marks would change to those of the new line
                self.go_to(lines[at % len(lines)])
            self.refresh()
