"""Define the base class of text and table panes: a cursor over any number of lines, scrolling, searching,
copying.

A line is drawn when it becomes visible, and the result is reused until the line changes.
"""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections import OrderedDict
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from jaxscope.present.escape import escape
from jaxscope.tui.actions import bindings
from jaxscope.tui.metaclass import AbstractMeta

PAUSE_S, PAUSE_HURRIED_S = 0.005, 0.04
TOLD_S = 0.1  # how often the progress of a search is shown
_KEPT = 1_000  # drawn lines that are kept
_COLUMNS = 8  # characters by which one key scrolls to the side


class LineView(ScrollView, can_focus=True, metaclass=AbstractMeta):
    """A scrollable list of lines, the base of text and table panes. Subclasses define how many lines there
    are and how each is drawn.

    Attributes:
      about: what this pane shows, for the help page.
      cursor: the number of the selected line, from 0; -1: there is none.
      empty: the text that is shown if there are no lines, with the key or command that adds some.
      needle: the text of the search or filter; empty: none.
      held: whether the cursor was moved by ``go_to``.
    """

    BINDINGS: ClassVar[list[Binding]] = bindings("lines")  # type: ignore[assignment]
    SCOPES: ClassVar[tuple[str, ...]] = ("lines",)
    about: str = ""

    cursor = reactive(-1, repaint=False)

    class Moved(Message):
        """Announce that the cursor is on another line."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> LineView:
            return self.view

    class Sought(Moved):
        """Announce that a search or a filter has ended; while it goes on, announce from time to time how far
        it has come."""

    class Opened(Moved):
        """Announce Enter, or a second click on the line that the cursor is on already."""

    def __init__(self, *, title: str = "", empty: str = "", about: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self.empty = empty
        self.about = about
        self.needle = ""
        self.held = False
        self._centered = False
        self._drawn: OrderedDict[tuple[object, ...], Strip] = OrderedDict()
        self._styles: dict[str, Style] = {}
        self._look = 0, Style.null()  # of the current redraw: the width, and the background of all lines
        self._title: str | None = None
        self._theme = ""
        self._empty_lines: tuple[tuple[str, int], list[str]] = ("", 0), []
        self.entitle(title)

    # -- what subclasses define ------------------------------------------------------------------

    @property
    @abstractmethod
    def line_count(self) -> int: ...

    @property
    def heading(self) -> int:
        """Return the number of lines at the top that do not scroll."""
        return 0

    @abstractmethod
    def draw(self, line: int, width: int) -> Strip:
        """Return line number ``line`` as a strip (Textual's class for one line of the screen), for a pane of
        ``width`` characters. The strip may be longer than ``width``, and has no background."""

    def draw_heading(self, width: int) -> Strip:
        """Return the heading (see ``heading``) as a strip of ``width`` characters."""
        return Strip.blank(width)

    def mark_of(self, line: int) -> object:
        """Return a value that differs from the previous one if line number ``line`` has to be drawn again for
        a reason other than cursor, width or scrolling, for example a new link from another pane."""
        return None

    @abstractmethod
    def copied(self, line: int) -> str:
        """Return the text of ``line`` that the key ``y`` copies."""

    @abstractmethod
    def search(self, needle: str) -> None:
        """Search for ``needle``: a text pane marks the matches, a table shows only the rows that contain it.
        This method is called at every letter that the user types; an empty text ends the search."""

    def under_cursor(self) -> str:
        """Return the full text of the parts of the current line that are cut on the screen; empty if none is
        cut."""
        return ""

    @abstractmethod
    def position(self) -> str:
        """Return a text about the matches of the search, such as ``3/412``; empty without a search."""

    # -- drawing ----------------------------------------------------------------------------------

    def entitle(self, title: str, subtitle: str = "") -> None:
        """Set the title of the pane's border to ``title`` and, after it, ``subtitle``. Both are escaped,
        because they may contain names from the program."""
        text = escape(f"{title}  {subtitle}" if subtitle else title)
        if text != self._title:
            self._title = text
            self.border_title = Content(text)

    def style_of(self, name: str) -> Style:
        """Return the Rich style with this ``name`` in ``style.CSS`` (``dim``, ``warning``); an empty name is
        no style."""
        if not name:
            return Style.null()
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self.screen.get_component_rich_style(
                f"line--{name}", partial=True, default=Style.null()
            )
        return found

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._theme != self.app.theme:  # not at a change of focus, which changes no line
            self._theme = self.app.theme
            self._styles.clear()
            self._drawn.clear()

    def forget(self) -> None:
        """Discard all drawn lines and draw the visible ones again."""
        self._drawn.clear()
        self.refresh()

    def fit(self, width: int = 0) -> None:
        """Adjust the scrollable size and the cursor to a new number of lines. ``width`` is the number of
        characters of the longest line; 0: the pane does not scroll sideways."""
        self.virtual_size = Size(width, self.line_count + self.heading)
        if self.cursor >= self.line_count:
            self.cursor = self.line_count - 1
        elif self.cursor < 0 < self.line_count:
            self.cursor = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        # Width (without the scroll bar) and style are looked up once per redraw: doing so for each line would
        # double the time of a line.
        self._look = self.scrollable_content_region.width, self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width, base = self._look
        if y < self.heading and self.line_count:
            return self.draw_heading(width).crop_extend(0, width, base).apply_style(base)
        line = self.scroll_offset.y + y - self.heading
        if not self.line_count:
            return self._empty_line(y, width, base)
        if not 0 <= line < self.line_count:
            return Strip.blank(width, base)
        here = line == self.cursor
        key = (line, here, width, self.scroll_offset.x, base, self.mark_of(line))
        strip = self._drawn.get(key)
        if strip is None:
            strip = self._finish(self.draw(line, width), width, base, here)
            self._drawn[key] = strip
            while len(self._drawn) > _KEPT:
                self._drawn.popitem(last=False)
        return strip

    def _finish(self, strip: Strip, width: int, base: Style, here: bool) -> Strip:
        """Return ``strip`` cut or padded to ``width`` characters, with the background ``base``. ``here``: the
        cursor is on this line."""
        strip = strip.crop_extend(0, width, None)
        if here:
            strip = Strip(
                [Segment(s.text, self.style_of("cursor") + (s.style or Style.null())) for s in strip], width
            )
        return strip.apply_style(base)

    def nothing(self) -> str:
        """Return the text to show if there are no lines."""
        return self.empty

    def _empty_line(self, y: int, width: int, base: Style) -> Strip:
        """Return row ``y`` of a pane without lines: a part of the text of ``nothing()``."""
        wanted = self.nothing(), max(10, width - 4)
        if self._empty_lines[0] != wanted:
            lines = [
                line
                for paragraph in wanted[0].split("\n")
                for line in textwrap.wrap(escape(paragraph), wanted[1])
            ]
            self._empty_lines = wanted, lines
        texts = self._empty_lines[1]
        if not 1 <= y <= len(texts):
            return Strip.blank(width, base)
        return (
            Strip([Segment("  " + texts[y - 1], self.style_of("dim"))])
            .crop_extend(0, width, base)
            .apply_style(base)
        )

    def pause(self) -> float:
        """Return the seconds to wait between two portions of long work, such as a search. The pause is longer
        if a key was just pressed, because the key has to be handled between portions."""
        return PAUSE_HURRIED_S if getattr(self.app, "hurried", False) else PAUSE_S

    # -- moving -----------------------------------------------------------------------------------

    def watch_cursor(self, before: int, after: int) -> None:
        if before != after:
            self.redraw(before, after)
            self.post_message(self.Moved(self))

    def redraw(self, *lines: int) -> None:
        """Draw the lines with the numbers ``lines`` again, if they are visible."""
        top, room = self.scroll_offset.y, self.size.height - self.heading
        for line in lines:
            if 0 <= line - top < room:
                self.refresh(Region(0, line - top + self.heading, self.size.width, 1))

    def go_to(self, line: int, *, center: bool = False) -> None:
        """Put the cursor on ``line``, or on the nearest line if there is no such line, and scroll until it is
        visible; with ``center``, scroll it to the middle."""
        if not self.line_count:
            return
        self.held = True
        self.cursor = max(0, min(line, self.line_count - 1))
        self.reveal(self.cursor, center=center)

    def reveal(self, line: int, *, center: bool = False) -> None:
        """Scroll to make ``line`` visible: as little as needed, but to the middle of the pane with
        ``center``, or if the line is more than a page away."""
        self._centered = center
        if not self.size.height:
            return  # not laid out yet: on_resize will call this again
        room = max(1, self.size.height - self.heading)
        top = self.scroll_offset.y
        if top <= line < top + room and not center:
            return
        if center or not top - room < line < top + 2 * room:
            top = line - room // 2
        else:
            top = line if line < top else line - room + 1
        self.scroll_to(y=max(0, top), animate=False, immediate=True)

    def on_resize(self, event: Resize) -> None:
        if self.cursor >= 0:
            self.call_after_refresh(lambda: self.reveal(self.cursor, center=self._centered))

    def _page(self) -> int:
        return max(1, self.size.height - self.heading - 1)

    def action_move(self, by: int) -> None:
        self.go_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.go_to(self.cursor + by * self._page())

    def action_half(self, by: int) -> None:
        self.go_to(self.cursor + by * max(1, self._page() // 2))

    def action_top(self) -> None:
        self.go_to(0)

    def action_bottom(self) -> None:
        self.go_to(self.line_count - 1)

    def action_aside(self, by: int) -> None:
        self.scroll_to(x=max(0, self.scroll_offset.x + by * _COLUMNS), animate=False, immediate=True)

    def action_open(self) -> None:
        if 0 <= self.cursor < self.line_count:
            self.post_message(self.Opened(self))

    def action_copy(self) -> None:
        if 0 <= self.cursor < self.line_count:
            self.app.copy_to_clipboard(self.copied(self.cursor))
            self.notify("copied", timeout=2, markup=False)

    def on_click(self, event: Click) -> None:
        self.focus()
        line = self.scroll_offset.y + event.get_content_offset_capture(self).y - self.heading
        if 0 <= line < self.line_count:
            again = event.chain > 1 and line == self.cursor
            self.go_to(line)
            if again:
                self.action_open()
