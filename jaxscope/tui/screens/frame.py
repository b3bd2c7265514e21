"""Define the base class of the screens: header, names of the screens, panes, search line, footer."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, cast

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.events import DescendantFocus, Event, Resize, ScreenResume
from textual.screen import Screen
from textual.widget import MountError, Widget
from textual.widgets import Input, Static

from jaxscope.schema.keys import Frame
from jaxscope.tui import actions, style
from jaxscope.tui.cells import Button, Part, fitted
from jaxscope.tui.feed import Feed
from jaxscope.tui.lineview import LineView
from jaxscope.tui.metaclass import AbstractMeta
from jaxscope.tui.navigator import Navigator
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import chrome

NARROW = 100  # columns below which panes are placed one above the other
SHORT = 20  # lines below which the Overview shows its findings alone
LEISURE_S = 0.3  # after a screen is opened, or after a key, until the search line is created
UNDER_SHARE = 0.6  # share of the footer for the text of cells that are cut


class View(Screen[None], metaclass=AbstractMeta):
    """A screen of the app. Subclasses define its panes, and fill them whenever the run has changed.

    Attributes:
      NAME: the name of the screen in ``actions.VIEWS``, such as ``arrays``.
      SCOPES: the actions with one of these scopes in ``actions.ACTIONS`` belong to this screen.
      entered: the panes from which ``enter`` moved the focus to a pane with details, the latest last.
      complete: whether all panes exist; Textual may request a redraw before that.
    """

    NAME: ClassVar[str] = ""
    SCOPES: ClassVar[tuple[str, ...]] = ()
    BINDINGS: ClassVar[list[Binding]] = []  # type: ignore[assignment]
    AUTO_FOCUS = "LineView"
    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    entered: tuple[LineView, ...] = ()
    complete = False

    def compose(self) -> ComposeResult:
        yield Paragraphs(id="header", classes="stays")
        yield Paragraphs(id="tabs", classes="stays")
        yield Paragraphs(id="lost")
        yield from self.panes()
        with Horizontal(id="finding"):
            yield Static("/", id="slash", markup=False)
            yield Paragraphs(id="found", classes="stays")
        yield Paragraphs(id="footer", classes="stays")

    @abstractmethod
    def panes(self) -> Iterable[Widget]:
        """Yield the panes of the screen, from top to bottom. This method is called once, and may set
        attributes."""

    @abstractmethod
    def fill(self) -> None:
        """Show the current state of the run in the panes."""

    def place(self) -> Frame | None:
        """Return the source line of the selection on this screen, for the editor; None if it is unknown."""
        return None

    def elsewhere(self) -> str | None:
        """Return the name of the target (``--target``) whose program is shown on this screen; None: the
        program that ran is shown."""
        return None

    @property
    def scope(self) -> Navigator:
        return cast("Navigator", self.app)

    @property
    def feed(self) -> Feed:
        return self.scope.feed

    @property
    def narrow(self) -> bool:
        return self.size.width < NARROW

    @property
    def short(self) -> bool:
        return self.size.height < SHORT

    # -- what all screens do ----------------------------------------------------------------------

    def on_mount(self) -> None:
        self.complete = True
        # The screen was styled when it was created. Without this, Textual styles it again.
        self._css_update_count = self.app._css_update_count
        self.query_one("#finding").display = False
        self.set_class(self.app.size.width < NARROW, "narrow")
        self.set_class(self.app.size.height < SHORT, "short")

    async def on_event(self, event: Event) -> None:
        if isinstance(event, ScreenResume):
            # Textual updates styles itself when the theme changes; otherwise they are unchanged.
            event.refresh_styles = False
        await super().on_event(event)

    def on_screen_resume(self) -> None:
        self.renew()
        self.set_timer(LEISURE_S, self._prepare)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < NARROW, "narrow")
        self.set_class(event.size.height < SHORT, "short")
        self.call_after_refresh(self.renew)

    def renew(self) -> None:
        """Redraw header, names of the screens, panes and footer."""
        if not self.complete:
            return
        self.tick()
        if self.feed.ready:
            self.fill()
        self.foot()

    def tick(self) -> None:
        """Redraw the header, the names of the screens and the line about missing records, which change even
        if nothing new is recorded."""
        feed, width = self.feed, self.app.size.width
        if not feed.ready:
            done, total = feed.progress
            share = f" {100 * done / total:.0f} %" if total else ""
            self.words("header").say([(" jaxscope ", "title"), f" reading {feed.directory.path.name}{share}"])
            return
        self.words("header").say(
            chrome.header(
                feed.run,
                feed.directory,
                feed.state,
                paused=feed.paused,
                width=width,
                machine=self.elsewhere(),
            )
        )
        self.words("tabs").say(chrome.tabs(self.NAME, feed.findings, width))
        trouble: list[Part] = [(f" ◐ no findings: {feed.trouble}", "warning")] if feed.trouble else []
        self.words("lost").say(trouble or ([] if self.short else chrome.lost(feed.run)))

    def foot(self) -> None:
        """Redraw the footer: the keys that apply now, and the full text of what is cut in the current line.
        Also redraw the position among the matches beside the search line."""
        if not self.complete:
            return
        view, width = self.focused_view(), self.app.size.width
        whole = view.under_cursor() if view is not None else ""
        room = min(cell_len(whole), int(UNDER_SHARE * width)) if whole else 0
        made: list[Part | Button] = [
            Button([(f" {actions.spelled(a.keys)}", "key"), f" {a.words} "], actions.namespaced(a))
            for a in actions.footer(self.scopes(), width - room - (2 if room else 0), self.scope.actions)
        ]
        if room:
            kept = "".join(text for text, _ in fitted(whole, room))
            made = [(f" {kept} ", "title"), *made]
        self.words("footer").say(made)
        position = view.position() if view is not None else ""
        self.words("found").say([(position, "dim")])

    def words(self, id: str) -> Paragraphs:
        """Return the widget with this ``id``, which shows styled text."""
        return self.query_one(f"#{id}", Paragraphs)

    def focused_view(self) -> LineView | None:
        """Return the pane on which keys act: the pane with the focus, or if the search line has it, the
        searched pane. None if there is none."""
        return self.focused if isinstance(self.focused, LineView) else self._searched()

    def enter(self, view: LineView) -> None:
        """Move the focus to ``view``, a pane with details of the selection. ``leave_pane`` moves the focus
        back."""
        if isinstance(self.focused, LineView):
            self.entered = (*self.entered, self.focused)
        view.focus()

    def leave_pane(self) -> bool:
        """Move the focus back to the pane that had it before ``enter``. Return False if there is no such
        pane."""
        if not self.entered:
            return False
        *before, view = self.entered
        self.entered = tuple(before)
        view.focus()
        return True

    def views(self) -> list[LineView]:
        """Return the text and table panes of the screen, in order."""
        return [w for w in self.query("*").results() if isinstance(w, LineView)]

    def scopes(self) -> list[str]:
        """Return the scopes of the actions that apply now: of the screen, of the focused pane, and
        ``app``."""
        view = self.focused_view()
        return [*self.SCOPES, *(view.SCOPES if view is not None else ()), "app"]

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self.foot()

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        self.foot()

    def on_line_view_sought(self, event: LineView.Sought) -> None:
        self.foot()

    # -- searching --------------------------------------------------------------------------------

    def _searched(self) -> LineView | None:
        """Return the pane that is being searched; None if there is none."""
        return next((v for v in self.views() if v.has_class("searched")), None)

    async def _field(self) -> Input:
        """Return the input field of the search line; it is created when it is first needed."""
        if not self.query("#find"):
            await self.query_one("#finding").mount(Input(id="find", select_on_focus=False), after="#slash")
        return self.query_one("#find", Input)

    async def _prepare(self) -> None:
        """Create the search line at a moment without keys, because this takes nearly as long as a key may
        take."""
        if self.scope.hurried or not self.complete:
            self.set_timer(LEISURE_S, self._prepare)
        else:
            with contextlib.suppress(NoMatches, MountError):  # the app is closing
                await self._field()

    async def start_finding(self) -> None:
        """Show the search line for the pane with the focus, else for the first pane, and move the focus to
        it."""
        view = self.focused_view() or next(iter(self.views()), None)
        if view is None:
            return
        for other in self.views():
            other.set_class(other is view, "searched")
        with self.app.batch_update():  # one layout for the shorter panes, not two
            self.query_one("#finding").display = True
            field = await self._field()
            with field.prevent(Input.Changed):
                field.value = view.needle
            self.set_focus(field)  # at once: letters typed after the / belong to the search line

    def stop_finding(self, *, keep: bool) -> bool:
        """Move the focus from the search line back to the searched pane. Unless ``keep`` is set, also end the
        search and hide the line. Return False if no pane was searched."""
        bar, view = self.query_one("#finding"), self._searched()
        if view is None:
            return False
        if not keep:
            view.search("")
            view.remove_class("searched")
            bar.display = False
        view.focus()
        self.foot()
        return True

    def on_input_changed(self, event: Input.Changed) -> None:
        view = self._searched()
        if view is not None:
            view.search(event.value)
            self.foot()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.stop_finding(keep=True)
