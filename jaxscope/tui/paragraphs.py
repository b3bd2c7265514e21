"""A widget of styled paragraphs: headers, tabs, footers and the text of dialogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.style import Style
from rich.text import Text
from textual.events import Resize
from textual.geometry import Size
from textual.widgets import Static

from jaxscope.tui.cells import Button, Part, parts

Said = Sequence[Sequence[Part | Button]]  # paragraphs


class Paragraphs(Static):
    """A widget with styled paragraphs of text. Their text is escaped, so nothing in it is markup."""

    def __init__(self, id: str | None = None, classes: str | None = None) -> None:
        super().__init__("", id=id, classes=classes, markup=False)
        self.shown: list[list[Part | Button]] = []
        self._made_for: Callable[[Size], Said] | None = None
        self._theme = ""

    def say(self, *paragraphs: Sequence[Part | Button]) -> None:
        """Show ``paragraphs``. Without any text, hide the widget, unless it has the CSS class ``stays``."""
        self._made_for = None
        self._show(paragraphs)

    def say_for_size(self, make: Callable[[Size], Said]) -> None:
        """Show the paragraphs that ``make`` returns for the size of this widget. They are made again whenever
        the size changes. ``make`` must return some text, because a hidden widget has no size."""
        self._made_for = make
        self._show(make(self.size))

    def on_resize(self, event: Resize) -> None:
        if self._made_for is not None:
            self._show(self._made_for(self.size))

    def _show(self, paragraphs: Said) -> None:
        content = [list(p) for p in paragraphs]
        self.display = any(content) or self.has_class("stays")
        if content != self.shown:
            self.shown = content
            self._redraw()
        elif self.is_mounted:
            self._fit()  # Textual drops a layout requested while another screen is shown

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted and self._theme != self.app.theme:
            self._theme = self.app.theme
            self._redraw()

    def _redraw(self) -> None:
        made = Text()
        for n, paragraph in enumerate(self.shown):
            made.append("\n" if n else "")
            for piece in paragraph:
                button = piece if isinstance(piece, Button) else Button([piece], "")
                pressed = Style(meta={"@click": button.action}) if button.action else Style.null()
                for text, name in parts(button.parts):
                    made.append(text, self._style(name) + pressed)
        self.update(made, layout=False)  # a new layout takes longer than all the rest, and is rarely needed
        self._fit()

    def _fit(self) -> None:
        """Request a new layout if the text needs another height, or if the widget is as wide as its text."""
        size = self.size
        wide = self.styles.width is not None and self.styles.width.is_auto
        if self.styles.auto_dimensions and (
            wide or self.get_content_height(self.app.size, self.app.size, size.width) != size.height
        ):
            self.refresh(layout=True)

    def _style(self, name: str) -> Style:
        return (
            self.screen.get_component_rich_style(f"line--{name}", partial=True, default=Style.null())
            if name
            else Style.null()
        )
