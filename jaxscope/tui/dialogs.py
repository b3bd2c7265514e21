"""What is asked and answered over a screen: help for the focused pane, and how to leave a running program."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from jaxscope.tui import actions
from jaxscope.tui.cells import Part
from jaxscope.tui.screens.frame import Words


class Help(ModalScreen[None]):
    """What the focused pane shows and which keys it has."""

    BINDINGS = [Binding("escape,q,question_mark,f1,enter", "dismiss", "close", show=False)]

    def __init__(self, title: str, about: str, scopes: list[str]) -> None:
        super().__init__()
        self.heading, self.about, self.its_scopes = title, about, scopes

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="dialog"):
            yield Words(id="help")

    def on_mount(self) -> None:
        lines: list[list[Part]] = [[(self.heading, "title")], [self.about], []]
        for action in actions.of(self.its_scopes):
            keys = actions.spelled(action.keys, all_of_them=True)
            lines.append([(f"{keys:<12} ", "key"), action.help])
        lines += [[], [("esc closes this · ↑ ↓ scroll", "dim")]]
        self.query_one("#help", Words).say(*lines)


class Leave(ModalScreen[str | None]):
    """The program runs and was started here: it is never ended without a word."""

    BINDINGS = [
        Binding("d", "choose('detach')", "detach", show=False),
        Binding("s", "choose('stop')", "stop", show=False),
        Binding("escape", "choose('')", "stay", show=False),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Words(id="leave")

    def on_mount(self) -> None:
        self.query_one("#leave", Words).say(
            [("The program is still running.", "title")], [],
            [("d    ", "key"), "detach: it goes on, jaxscope view shows it again"],
            [("s    ", "key"), "stop it: SIGINT, as Ctrl-C; SIGTERM when it does not listen"],
            [("esc  ", "key"), "stay here"],
        )  # fmt: skip

    def action_choose(self, what: str) -> None:
        self.dismiss(what or None)
