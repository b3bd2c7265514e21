"""Define the command palette, which lists the commands that apply now, as ``go: Functions``. A search in it
also finds the compiled functions by name, at most MOST."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from jaxscope.present.text import function_name
from jaxscope.tui import actions
from jaxscope.tui.navigator import Navigator
from jaxscope.tui.screens.frame import View

MOST = 200  # functions in the palette


class Commands(Provider):
    """Provide the entries of Textual's command palette. Names of functions are plain text, not markup."""

    @property
    def _navigator(self) -> Navigator:
        return cast("Navigator", self.app)

    async def discover(self) -> Hits:
        for words, help, command in self._commands():
            yield DiscoveryHit(Content(words), command, text=words, help=help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for words, help, command in [*self._commands(), *self._functions()]:
            score = matcher.match(words)
            if score > 0:
                yield Hit(score, Content(words), command, text=words, help=help)

    def _commands(self) -> Iterator[tuple[str, str, IgnoreReturnCallbackType]]:
        """Yield (label, help, function to call) for each action that applies now, and for each theme."""
        view = self.screen
        scopes = view.scopes() if isinstance(view, View) else ["app"]
        target = view.focused_view() if isinstance(view, View) else None
        for action in actions.in_scopes(scopes, self._navigator.actions):
            if action.group:
                in_pane = target is not None and action.scope in target.SCOPES
                namespace = self.app if action.scope == "app" else target if in_pane else view
                run = partial(self.app.run_action, action.does, namespace)
                key = f"  ({actions.spelled(action.keys)})" if action.keys else ""
                yield f"{action.group}: {action.words}{key}", action.help, run
        for name, theme in sorted(self.app.available_themes.items()):
            colors = "Dark colors." if theme.dark else "Light colors."
            yield f"theme: {name}", colors, partial(setattr, self.app, "theme", name)

    def _functions(self) -> Iterator[tuple[str, str, IgnoreReturnCallbackType]]:
        """Yield (label, help, function to call) for compiled functions, the user's first, the slowest
        first."""
        found = sorted(self._navigator.feed.run.functions.values(), key=lambda f: (not f.user, -f.seconds))
        for f in found[:MOST]:
            if f.compilations:
                yield (
                    f"function: {function_name(f)}",
                    "Its compilations and their causes.",
                    partial(self._navigator.open_function, f.id),
                )
