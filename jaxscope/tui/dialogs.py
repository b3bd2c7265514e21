"""Define the dialogs: help, leaving a running program, choosing one of many, reading a page.

A dialog does not query its widgets when it is mounted: they may be gone if the app is closing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input

from jaxscope.tui import actions, style, tokens
from jaxscope.tui.cells import Column, Part
from jaxscope.tui.lines import Lines
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.tableview import TableView
from jaxscope.tui.textview import TextView

T = TypeVar("T")


class Help(ModalScreen[None]):
    """Explain the focused pane and list its keys."""

    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    BINDINGS = [Binding("escape,q,question_mark,f1,enter", "dismiss", "close", show=False)]

    def __init__(self, title: str, about: str, able: Sequence[actions.Action]) -> None:
        super().__init__()
        self.heading, self.about, self.able = title, about, able
        self.paragraphs = Paragraphs(id="help")

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="dialog"):
            yield self.paragraphs

    def on_mount(self) -> None:
        lines: list[list[Part]] = [[(self.heading, "title")], [self.about]]
        able = [a for a in self.able if a.keys]
        column = max((len(actions.spelled(a.keys, all_of_them=True)) for a in able), default=0) + 2
        room = min(style.DIALOG_COLUMNS, self.app.size.width * 9 // 10) - 8 - column
        for name, group in actions.sections(able).items():
            lines += [[], [(name, "heading")]]
            screens = [a for a in group if a.id.startswith("view.")]
            rows = [(actions.spelled(a.keys, all_of_them=True), a.help) for a in group if a not in screens]
            if screens:
                keys = " ".join(actions.spelled(a.keys) for a in screens)
                rows.insert(0, (keys, f"The screens {', '.join(a.words for a in screens)}."))
            for keys, text in rows:
                first, *rest = textwrap.wrap(text, max(20, room)) or [""]
                lines.append([(keys.ljust(column), "key"), first])
                lines += [[" " * column, more] for more in rest]
        lines += [[], [("esc closes this · ↑ ↓ scroll", "dim")]]
        self.paragraphs.say(*lines)


class Leave(ModalScreen[str | None]):
    """Ask whether a program that was started here is to continue."""

    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    BINDINGS = [
        Binding("d", "choose('detach')", "detach", show=False),
        Binding("s", "choose('stop')", "stop", show=False),
        Binding("escape", "choose('')", "stay", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs = Paragraphs(id="leave")

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield self.paragraphs

    def on_mount(self) -> None:
        self.paragraphs.say(
            [("The program is still running.", "title")],
            [],
            [("d    ", "key"), "detach: the program continues, jaxscope view opens it again"],
            [("s    ", "key"), "stop the program: SIGINT as with Ctrl-C, then SIGTERM"],
            [("esc  ", "key"), "stay here"],
        )

    def action_choose(self, what: str) -> None:
        self.dismiss(what or None)


class Picker(ModalScreen[T | None], Generic[T]):
    """Choose one item: letters filter, arrows move, enter selects."""

    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    BINDINGS = [
        Binding("escape", "dismiss", "close", show=False),
        *(
            Binding(key, f"move({by})", show=False)
            for key, by in (("up", -1), ("down", 1), ("pageup", -10), ("pagedown", 10))
        ),
    ]

    def __init__(
        self, title: str, columns: Sequence[Column[T]], ident: Callable[[T], str], items: Sequence[T]
    ) -> None:
        super().__init__()
        self.table: TableView[T] = TableView(columns, ident, title=title, empty="No match.", id="choice")
        self.items = items
        self.wanted: Input | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="tall"):
            self.wanted = Input(placeholder="type to filter, enter selects, esc cancels", id="wanted")
            yield self.wanted
            yield self.table

    def on_mount(self) -> None:
        self.table.can_focus = False  # the letters are for the filter
        self.table.show(self.items)
        if self.wanted is not None:
            self.wanted.focus()

    def action_move(self, by: int) -> None:
        self.table.action_move(by)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.table.look_for(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.table.current is not None:
            self.dismiss(self.table.current)

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        self.dismiss(self.table.current)


class Page(ModalScreen[None]):
    """Show a text; lines that begin with - and + have the colours of before and after."""

    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    BINDINGS = [Binding("escape,q,enter", "dismiss", "close", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.text, self.view = text, TextView(title=f"{title}   esc closes this", numbers=False, id="page")

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="tall"):
            yield self.view

    def on_mount(self) -> None:
        self.view.show(Lines(self.text), tokens.differences)
        self.view.focus()
