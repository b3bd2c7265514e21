"""The app: the feed, what is selected, the seven screens; everything shown is made elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

import textual.app
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.events import Event, Key
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape
from jaxscope.present.runs import ending
from jaxscope.schema.keys import Frame
from jaxscope.tui import actions, feed, style
from jaxscope.tui.app_actions import Verbs
from jaxscope.tui.feed import Feed
from jaxscope.tui.gc_pauses import Collector
from jaxscope.tui.palette import Commands
from jaxscope.tui.rows.output import Output
from jaxscope.tui.screens.arrays import Arrays
from jaxscope.tui.screens.collectives import Collectives
from jaxscope.tui.screens.findings import Findings
from jaxscope.tui.screens.frame import View
from jaxscope.tui.screens.functions import Functions
from jaxscope.tui.screens.output import OutputView
from jaxscope.tui.screens.overview import Overview
from jaxscope.tui.screens.program import ProgramView

CLOCK_S = 1.0
PATIENCE_S = 3.0
SWITCH_S = (
    0.0005  # Python's 5 ms, waited for at each of the ten steps of a key while rules run in another thread
)
SETTLE_S = 0.01
KEYS_FIRST_S, NEWS_S = (
    0.3,
    1.0,
)  # keys come first: so long new events wait to be read, and to be shown
REST = 3  # after a redraw, this many times what it took belong to keys


def hung_up() -> bool:
    """Return whether the terminal is gone: without SIGHUP (``nohup``) it would be read for ever."""
    try:
        termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
    except (OSError, termios.error):
        return True
    except (AttributeError, ValueError):  # there is none
        return False
    return False


class RunChanged(Message):
    """Announce that the run, or its findings, changed since the screens were drawn."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RunChanged)


class App(Verbs):
    """Show the screens of a run.

    Returns ``detach`` or ``stop`` if a running program that was started here is left, else None.

    Args:
      owned: whether this command started the program; if so, the interface asks before it leaves.
      alive: whether the program still runs, from a source that is faster than its recording.
      keys: keys that replace those of the table, by the action's id.
    """

    CSS = style.CSS
    TITLE = "jaxscope"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {Commands}
    BINDINGS: ClassVar[list[Binding]] = actions.bindings("app")  # type: ignore[assignment]
    MODES: ClassVar[dict[str, Callable[[], Screen[None]]]] = {  # type: ignore[assignment]
        screen.NAME: screen
        for screen in (Overview, Functions, ProgramView, Collectives, Arrays, Findings, OutputView)
    }  # fmt: skip
    DEFAULT_MODE = "overview"

    def __init__(
        self,
        directory: RunDir,
        *,
        owned: bool = False,
        alive: Callable[[], bool] | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.stylesheet = style.Rules(variables=self.get_css_variables())
        self.actions = actions.remapped(keys or {})
        self.feed, self.output, self.owned = Feed(directory), Output(directory.output), owned
        self._alive = alive
        self.function: str | None = None  # what all screens speak of
        self.compilation: str | None = None
        self.machine: str | None = None  # by its name as a target; None: the one it ran on
        self.instruction: str | None = None  # to be gone to in the program
        self.place: Frame | None = None
        self.finding: str | None = None
        self.starred: frozenset[str] = frozenset()
        self.hidden: frozenset[str] = frozenset()  # codes of findings
        self.trail: list[str] = []
        self._seen, self._ran, self._ending = -1, False, False
        self.last_resort = threading.Timer(PATIENCE_S, os._exit, [128 + signal.SIGTERM])
        self.last_resort.daemon = True
        self.failed: BaseException | None = None  # an error of jaxscope that ended the view
        self._free_at = self._drawn_at = self._took_at = 0.0
        self._collector: Collector | None = None

    def _fatal_error(self) -> None:
        """Close the interface after an internal error, and keep the error for the caller.

        Textual's own method would print all local variables.
        """
        self.failed = sys.exc_info()[1]
        if os.environ.get("JAXSCOPE_DEBUG") == "1":
            super()._fatal_error()
        else:
            self._close_messages_no_wait()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return style.DARK if self.current_theme.dark else style.LIGHT

    def on_mount(self) -> None:
        self.theme = "textual-light" if style.is_light() else "textual-dark"
        self._hear()
        self._collector = Collector()
        sys.setswitchinterval(SWITCH_S)
        if not self.is_headless:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not on the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end, "terminated")
        self.feed.start()
        self.set_interval(feed.PERIOD_S, self._tick)

    def delay_update(self, delay: float = SETTLE_S) -> None:
        """Textual waits 50 ms for the panes of another screen, which has half of what
        a key may take; ours are there.
        """
        super().delay_update(min(delay, SETTLE_S))

    def refresh_css(self, animate: bool = True) -> None:
        """Textual asks for it once for the screen that is new, and once for the one that
        is left, which looks as it did.
        """
        with contextlib.suppress(AttributeError, KeyError, textual.app.ScreenError):
            if all(screen._css_update_count == self._css_update_count for screen in self.screen_stack):
                return
        super().refresh_css(animate)

    def _hear(self) -> None:
        """Bind the keys that the configuration changes from those of ``actions.ACTIONS``."""
        own = {a.id: a.keys for a in actions.ACTIONS}
        changed = {a.id: a for a in self.actions if a.keys != own[a.id]}
        self.set_keymap({id: a.keys for id, a in changed.items() if own[id]})
        for a in changed.values():
            if not own[a.id]:  # Textual re-maps bindings, and this had none
                self.bind(a.keys, a.does, show=False)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key):
            self.feed.key()
            line = self.focused
            if event.is_forwarded and isinstance(line, Input) and event.is_printable:
                # It came back from the pane that had the focus before the line that was asked for just now.
                line.post_message(Key(event.key, event.character))
                return
        await super().on_event(event)

    def on_unmount(self) -> None:
        self.feed.stop()
        if self._collector is not None:
            self._collector.stop()

    def _tick(self) -> None:
        """Take in what has come; redraw, but never so often that keys wait."""
        now = time.monotonic()
        if not self.is_headless and hung_up():
            self._end("terminated")
        if self.feed.typed and now < self._took_at + KEYS_FIRST_S:
            return
        self._took_at = now
        self.feed.take()
        if not self.feed.paused:
            self.output.poll()
        self._watch_for_the_end()
        if self._collector is not None:
            self._collector.tick(now, self.feed.key_at)
        view = self.view
        if view is not None:
            with contextlib.suppress(NoMatches):  # the app closes, and its panes go one by one
                view.tick()
        if self.feed.running and now - self._drawn_at > CLOCK_S:
            self._seen = -1  # time passes, and is on the screen
        if self.feed.ready and self.feed.version != self._seen and now >= self._free_at:
            if self._drawn_at == 0.0 and self._collector is not None:  # for the first time
                self._collector.loaded()
            self._seen = self.feed.version
            self.post_message(RunChanged(self._seen))

    def _end(self, how: str) -> None:
        """End the view, for a reason from outside.

        A terminal that is gone cannot be restored, and Textual may wait for it.
        """
        if self._ending:
            return
        self._ending = True
        self.last_resort.start()
        self.exit(how)

    def _watch_for_the_end(self) -> None:
        """Show once, on any screen, that the program has ended while the view was open."""
        if not self.feed.ready:
            return
        running, self._ran = self._ran, self.feed.running
        if running and not self._ran:
            how, bad = ending(self.feed.run, self.feed.directory)
            words = f"The program has ended: {escape(how)}." + (" Press 1 for the cause." if bad else "")
            self.notify(words, severity="error" if bad else "information", timeout=8, markup=False)

    def on_run_changed(self, event: RunChanged) -> None:
        self.call_later(self._show_news)  # behind the keys that came meanwhile

    def _show_news(self) -> None:
        began = time.monotonic()
        if self.feed.typed and began < self._drawn_at + NEWS_S:
            self._seen = -1  # in a later tick
            return
        if self.view is not None:
            with contextlib.suppress(NoMatches):
                self.view.renew()
        self._drawn_at = time.monotonic()
        self._free_at = self._drawn_at + REST * (self._drawn_at - began)

    @property
    def hurried(self) -> bool:
        """Return whether keys were pressed just now."""
        return self.feed.typed

    def goes_on(self) -> bool:
        return self._alive() if self._alive is not None else self.feed.running

    @property
    def view(self) -> View | None:
        """Return the screen with all its panes if it is one of jaxscope's; None while screens change."""
        try:
            return self.screen if isinstance(self.screen, View) and self.screen.complete else None
        except textual.app.ScreenStackError:
            return None

    def output_tail(self) -> list[str]:
        lines = self.output.lines
        return [lines[n] for n in range(max(0, len(lines) - 200), len(lines))]

    # -- what is selected -------------------------------------------------------------------------

    def select(
        self,
        *,
        function: str,
        compilation: str | None = None,
        instruction: str | None = None,
        place: Frame | None = None,
    ) -> None:
        """Select the function, compilation, instruction and line that all screens show."""
        self.function, self.compilation, self.instruction, self.place = (
            function,
            compilation,
            instruction,
            place,
        )

    def open_function(self, function: str) -> None:
        self.select(function=function)
        self.go("functions")

    def go(self, name: str) -> None:
        """Call ``action_show(name)`` once the keys already typed are handled."""
        self.call_later(self.action_show, name)
