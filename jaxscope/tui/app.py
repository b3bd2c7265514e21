"""Define the terminal app. It owns the seven screens, the selection that they share, and the ``Feed``, which
reads the run. Modules in ``tui.rows`` compute what the screens show."""

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
from jaxscope.tui.app_actions import AppActions
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
# Seconds after which Python switches threads, in place of its 0.005: while rules run in another thread, one
# key needs about ten switches.
SWITCH_S = 0.0005
SETTLE_S = 0.01
# While the user types, new events are read after KEYS_FIRST_S seconds or later, and shown after NEWS_S.
KEYS_FIRST_S, NEWS_S = 0.3, 1.0
REST = 3  # the pause after a redraw, in which keys are handled, as a multiple of the redraw's duration


def hung_up() -> bool:
    """Return whether standard input was lost or is no terminal, so that the view must end. False if the
    process has no standard input at all."""
    try:
        termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
    except (OSError, termios.error):  # under nohup, no SIGHUP reports that the terminal was closed
        return True
    except (AttributeError, ValueError):  # there is no standard input
        return False
    return False


class RunChanged(Message):
    """Announce that the run or its findings changed since the screens were drawn. ``version`` is the new
    ``Feed.version``."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RunChanged)


class App(AppActions):
    """Show the screens of a run (the recording of one program).

    ``run()`` returns ``detach`` or ``stop`` if the user leaves a program that this command started and that
    still runs, ``terminated`` if a signal or a lost terminal ended the view, and None otherwise.

    Args:
      owned: whether this command started the program. If so, a user who closes the view while the program
        runs is asked whether the program continues.
      alive: a function that returns whether the program still runs. None: the view relies on the recording,
        which shows the program's end a little later.
      keys: the keys that the user configured, by action id; they replace the default keys in
        ``actions.ACTIONS``.
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
        self.function: str | None = None  # the selection that all screens share, as in Navigator
        self.compilation: str | None = None
        self.machine: str | None = None  # the selected target; None: the machine that ran the program
        self.instruction: str | None = None  # the HLO instruction at which the program screen is to open
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
        """Close the view after an internal error, and keep the error in ``failed`` for the caller. Textual's
        own method, which prints all local variables, is used only with ``JAXSCOPE_DEBUG=1``."""
        self.failed = sys.exc_info()[1]
        if os.environ.get("JAXSCOPE_DEBUG") == "1":
            super()._fatal_error()
        else:
            self._close_messages_no_wait()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return style.DARK if self.current_theme.dark else style.LIGHT

    def on_mount(self) -> None:
        self.theme = "textual-light" if style.is_light() else "textual-dark"
        self._bind_configured_keys()
        self._collector = Collector()
        sys.setswitchinterval(SWITCH_S)
        if not self.is_headless:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not on the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end, "terminated")
        self.feed.start()
        self.set_interval(feed.PERIOD_S, self._tick)

    def delay_update(self, delay: float = SETTLE_S) -> None:
        """Postpone drawing by ``delay`` seconds, but at most SETTLE_S."""
        # Textual waits 50 ms for the panes of a new screen. Here they exist already.
        super().delay_update(min(delay, SETTLE_S))

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the style rules to the screens, unless all of them have the current styles already.
        ``animate`` is Textual's parameter: whether changes are animated."""
        with contextlib.suppress(AttributeError, KeyError, textual.app.ScreenError):
            # At each switch of screens, Textual calls this also for the previous screen.
            if all(screen._css_update_count == self._css_update_count for screen in self.screen_stack):
                return
        super().refresh_css(animate)

    def _bind_configured_keys(self) -> None:
        """Bind the keys that the user configured, in place of the default keys in ``actions.ACTIONS``."""
        own = {a.id: a.keys for a in actions.ACTIONS}
        changed = {a.id: a for a in self.actions if a.keys != own[a.id]}
        self.set_keymap({id: a.keys for id, a in changed.items() if own[id]})
        for a in changed.values():
            if not own[a.id]:  # set_keymap changes existing bindings only, and this action had none
                self.bind(a.keys, a.does, show=False)

    async def on_event(self, event: Event) -> None:
        """Record the time of each key. Pass a letter on to the search line if it was typed just before the
        line opened."""
        if isinstance(event, Key):
            self.feed.key()
            line = self.focused
            if event.is_forwarded and isinstance(line, Input) and event.is_printable:
                # The search line was opened just now: this letter was typed for it, but the pane that had the
                # focus before got it.
                line.post_message(Key(event.key, event.character))
                return
        await super().on_event(event)

    def on_unmount(self) -> None:
        self.feed.stop()
        if self._collector is not None:
            self._collector.stop()

    def _tick(self) -> None:
        """Read new events and output of the program, and request a redraw if the screens are out of date. A
        timer calls this method every ``feed.PERIOD_S`` seconds. If the terminal is gone, end the view."""
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
            with contextlib.suppress(NoMatches):  # the app is closing, and some panes are gone already
                view.tick()
        if self.feed.running and now - self._drawn_at > CLOCK_S:
            self._seen = -1  # redraw: the screens show the time
        if self.feed.ready and self.feed.version != self._seen and now >= self._free_at:
            if self._drawn_at == 0.0 and self._collector is not None:  # the run has just been read
                self._collector.loaded()
            self._seen = self.feed.version
            self.post_message(RunChanged(self._seen))

    def _end(self, result: str) -> None:
        """End the view because of a signal or a lost terminal; ``result`` is what ``run()`` returns. A timer
        ends the process if Textual waits too long for a terminal that is gone."""
        if self._ending:
            return
        self._ending = True
        self.last_resort.start()
        self.exit(result)

    def _watch_for_the_end(self) -> None:
        """Notify the user once, on any screen, when the program has ended while the view was open."""
        if not self.feed.ready:
            return
        running, self._ran = self._ran, self.feed.running
        if running and not self._ran:
            how, bad = ending(self.feed.run, self.feed.directory)
            words = f"The program has ended: {escape(how)}." + (" Press 1 for the cause." if bad else "")
            self.notify(words, severity="error" if bad else "information", timeout=8, markup=False)

    def on_run_changed(self, event: RunChanged) -> None:
        self.call_later(self._show_news)  # after the keys that came meanwhile

    def _show_news(self) -> None:
        """Redraw the current screen; while the user types, only now and then."""
        began = time.monotonic()
        if self.feed.typed and began < self._drawn_at + NEWS_S:
            self._seen = -1  # redraw in a later tick
            return
        if self.view is not None:
            with contextlib.suppress(NoMatches):
                self.view.renew()
        self._drawn_at = time.monotonic()
        self._free_at = self._drawn_at + REST * (self._drawn_at - began)

    @property
    def hurried(self) -> bool:
        """Return whether a key was pressed just now, so that long work should leave time for keys."""
        return self.feed.typed

    def goes_on(self) -> bool:
        return self._alive() if self._alive is not None else self.feed.running

    @property
    def view(self) -> View | None:
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
        """Select ``function`` and ``compilation`` (ids) for all screens; None: no compilation. The program
        screen then opens at the HLO ``instruction`` with this name, or at the source line ``place``; None: at
        no particular line."""
        self.function, self.compilation = function, compilation
        self.instruction, self.place = instruction, place

    def open_function(self, function: str) -> None:
        self.select(function=function)
        self.go("functions")

    def go(self, name: str) -> None:
        """Switch to the screen with this name, such as ``arrays`` (``actions.VIEWS`` lists them), once the
        keys already typed are handled."""
        self.call_later(self.action_show, name)
