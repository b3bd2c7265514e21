"""What the keys of the whole app do; which keys those are, the table in ``actions`` says."""

from __future__ import annotations

import subprocess

import textual.app
from textual.app import SuspendNotSupported

from jaxscope.report.escape import escape
from jaxscope.tui import editor
from jaxscope.tui.dialogs import Help, Leave
from jaxscope.tui.feed import Feed
from jaxscope.tui.lineview import LineView
from jaxscope.tui.screens.frame import View


class Verbs(textual.app.App[str]):
    """The app's actions. ``trail``: the screens one came by."""

    feed: Feed
    owned: bool
    trail: list[str]

    @property
    def view(self) -> View | None:
        """The screen, where it is one of ours, with all its panes: none while one gives way to another."""
        raise NotImplementedError

    async def action_show(self, name: str) -> None:
        """Awaited: a key that comes before the other screen stands would find none."""
        if name != self.current_mode:
            self.trail = [*self.trail[-20:], str(self.current_mode)]
            await self.switch_mode(name)

    async def action_back(self) -> None:
        screen = self.view
        if screen is None or screen.stop_finding(keep=False):
            return
        if screen.maximized is not None:
            screen.minimize()
        elif self.trail:
            await self.switch_mode(self.trail.pop())

    async def action_find(self) -> None:
        if self.view is not None:
            await self.view.start_finding()

    def action_zoom(self) -> None:
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif isinstance(self.screen.focused, LineView):
            self.screen.maximize(self.screen.focused)

    def action_pause(self) -> None:
        self.feed.paused = not self.feed.paused
        if self.view is not None:
            self.view.renew()

    def action_theme(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_help(self) -> None:
        screen = self.view
        if screen is None:
            return
        view = screen.focused_view()
        title = str(view.border_title) if view is not None else screen.NAME
        self.push_screen(Help(title, view.about if view is not None else "", screen.scopes()))

    def action_source(self) -> None:
        """The editor, at the line that is meant here; the terminal is its own meanwhile."""
        place = self.view.place() if self.view is not None else None
        command = editor.command(place.file, place.line) if place is not None else None
        if place is None or command is None:
            said = "no line of yours is known here" if place is None else f"set EDITOR to open {place.file}:{place.line}"  # fmt: skip
            self.notify(escape(said), markup=False)
            return
        try:
            with self.suspend():
                subprocess.run(command, check=False)
        except (OSError, SuspendNotSupported) as e:
            self.notify(escape(f"{command[0]}: {e}"), severity="error", markup=False)

    async def action_quit(self) -> None:  # Textual's own ctrl+q does not ask
        self.action_leave()

    def action_leave(self) -> None:
        if self.owned and self.feed.running:
            self.push_screen(Leave(), lambda what: self.exit(what) if what else None)
        else:
            self.exit(None)
