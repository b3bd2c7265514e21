"""Define the dialogs: help, the question before leaving a running program, a list to choose from, a page of
text, and the ranks (processes) of a job.

When the app closes while a dialog opens, the widgets of the dialog may be gone already. So dialogs keep their
widgets as attributes instead of querying them.
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

from jaxscope.present.text import seconds
from jaxscope.tui import actions, style, tokens
from jaxscope.tui.cells import Column, Part
from jaxscope.tui.exports import LANE, JobRanks, RankGroup
from jaxscope.tui.lines import Lines
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.tableview import TableView
from jaxscope.tui.textview import TextView

T = TypeVar("T")


class Help(ModalScreen[None]):
    """Show help about the focused pane: its ``title``, what it shows (``about``), and its actions (``able``)
    with their keys."""

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
    """Ask whether the program, which this command started and which still runs, continues after the view is
    closed. The result is ``detach`` (the program continues), ``stop``, or None (the view stays open)."""

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

    def action_choose(self, choice: str) -> None:
        self.dismiss(choice or None)


class Picker(ModalScreen[T | None], Generic[T]):
    """Let the user choose one of ``items``: letters filter, arrows move, enter selects.

    The result is the chosen item; None: the dialog was closed without a choice.

    Args:
      ident: takes an item and returns its id, which differs from the ids of all other items.
    """

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
        self.table.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.table.current is not None:
            self.dismiss(self.table.current)

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        self.dismiss(self.table.current)


class Page(ModalScreen[None]):
    """Show a text. Lines that begin with ``-`` or ``+``, and texts ``before → after``, have the colors of a
    comparison."""

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


class Ranks(ModalScreen[None]):
    """Show the ranks of a job (its processes): a table with one row for each group of ranks that compiled the
    same programs, and below it how the groups differ. ``open_rank`` is called with a group when the user
    opens its row."""

    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    BINDINGS = [
        Binding("escape,q", "dismiss", "close", show=False),
        Binding("tab,shift+tab", "other", "other pane", show=False),
    ]

    def __init__(self, ranks: JobRanks, open_rank: Callable[[RankGroup], None]) -> None:
        super().__init__()
        self.ranks, self.open_rank = ranks, open_rank
        time = "time" if ranks.seconds is None else f"0 … {seconds(ranks.seconds)}  █ compiled  · ran"
        columns = (
            Column[RankGroup]("equal ranks", lambda g, _: [(g.name, "name")]),
            Column[RankGroup]("compilations", lambda g, _: f"{g.programs:,}", width=12, right=True),
            Column[RankGroup]("state", lambda g, _: g.state, width=10),
            Column[RankGroup](time, lambda g, _: g.lane, width=LANE, wide=LANE + 40, found=False),
        )
        self.table: TableView[RankGroup] = TableView(columns, lambda g: g.name, title="Ranks", id="groups")
        self.view = TextView(title="Differences and figures", numbers=False, id="page")
        self.keys = Paragraphs(id="keys")

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="tall"):
            yield self.table
            yield self.view
            yield self.keys

    def on_mount(self) -> None:
        self.table.show(self.ranks.groups)
        self.view.show(Lines(self.ranks.text))
        words = (
            ("↑ ↓", "move"),
            ("enter", "report of the lowest rank"),
            ("tab", "other pane"),
            ("esc", "close"),
        )
        self.keys.say([part for key, what in words for part in ((f" {key}", "key"), f" {what} ")])
        self.table.focus()

    def action_other(self) -> None:
        (self.view if self.table.has_focus else self.table).focus()

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        if event.view is self.table and self.table.current is not None:
            self.open_rank(self.table.current)
