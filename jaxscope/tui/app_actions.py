"""Implement the actions that apply on every screen; their keys are in the table of ``actions``."""

from __future__ import annotations

import subprocess
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import textual.app
from rich.console import RenderableType
from textual.actions import ActionParseResult
from textual.app import SuspendNotSupported
from textual.dom import DOMNode

from jaxscope.log import files
from jaxscope.present.escape import escape
from jaxscope.tui import actions, editor, exports
from jaxscope.tui.actions import Action
from jaxscope.tui.cells import Column
from jaxscope.tui.dialogs import Help, Leave, Page, Picker, Ranks
from jaxscope.tui.feed import Feed
from jaxscope.tui.lineview import LineView
from jaxscope.tui.metaclass import AbstractMeta
from jaxscope.tui.rows.program import default
from jaxscope.tui.screens.frame import View


class AppActions(textual.app.App[str], metaclass=AbstractMeta):
    """Base class of the app with the methods that its actions call.

    Attributes:
      trail: names of the screens visited before, the latest last; the action ``back`` returns to them.
      leaving: whether the app is closing; then all actions are ignored.
      actions: all actions with the keys that the user configured.
      function, compilation: ids of the selected function and compilation; None: none is selected.
    """

    feed: Feed
    owned: bool
    trail: list[str]
    leaving = False
    actions: Sequence[Action]
    function: str | None
    compilation: str | None

    @abstractmethod
    def goes_on(self) -> bool:
        """Return whether the program may still be running."""

    @property
    @abstractmethod
    def view(self) -> View | None:
        """Return the current screen if it is a ``View`` whose panes all exist. Return None if a dialog is
        open, or if the screen is being switched."""

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action of a key, click or command, unless the app is closing. Return whether it was
        handled."""
        return self.leaving or await super().run_action(action, default_namespace, namespaces)

    def exit(
        self, result: str | None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        """Close the app with ``result`` as its result. Further calls do nothing."""
        if not self.leaving:
            self.leaving = True
            super().exit(result, return_code, message)

    async def action_show(self, name: str) -> None:
        """Switch to the screen ``name`` (see ``actions.VIEWS``), and wait until it can take keys."""
        if name != self.current_mode:
            self.trail = [*self.trail[-20:], str(self.current_mode)]
            await self.switch_mode(name)

    async def action_back(self) -> None:
        """Undo the first of these that applies: a notice, the search, the zoom, a step to a pane with
        details, a switch of screens."""
        screen = self.view
        if screen is not None and screen.query("Toast"):
            self.clear_notifications()
            return
        if screen is None or screen.stop_finding(keep=False):
            return
        if screen.maximized is not None:
            screen.minimize()
        elif screen.leave_pane():
            return
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

    async def action_help(self) -> None:
        screen = self.view
        if screen is None:
            return
        view = screen.focused_view()
        title = str(view.border_title) if view is not None else screen.NAME
        able = actions.in_scopes(screen.scopes(), self.actions)
        await self.push_screen(Help(title, view.about if view is not None else "", able))

    def action_source(self) -> None:
        """Open the user's editor at the source line of the selection, and suspend the view until the editor
        ends. If the line, its file or the editor is unknown, show a notice instead."""
        place = self.view.place() if self.view is not None else None
        if place is None:
            self._notice("the source line of this selection is unknown")
            return
        file = editor.openable(place.file)
        command = editor.command(file or "", place.line)
        if command is None:
            self._notice(f"set EDITOR to open {place.file}:{place.line}")
        elif file is None:
            self._notice(f"there is no file {place.file}", bad=True)
        else:
            self.outside(command, command[0])

    def outside(self, command: Sequence[str], name: str, instead: str | None = None) -> None:
        """Run ``command`` in the terminal and return to the view when it ends. If it cannot be run, show
        ``instead``, or if that is None, ``name`` (of the command) and the error."""
        trouble: Exception | None = None
        try:
            with self.suspend():  # an exception that leaves this block would leave the app suspended
                try:
                    subprocess.run(command, check=False)
                except (OSError, ValueError) as e:
                    trouble = e
        except SuspendNotSupported as e:
            trouble = e
        if trouble is not None:
            self.notify(escape(instead or f"{name}: {trouble}"), severity="error", timeout=8, markup=False)

    def action_ranks(self) -> None:
        """Show the ranks (processes) of the job to which this run belongs. Their logs are read in another
        process."""

        def do() -> None:
            try:
                found = self.feed.processes.call(exports.ranks, self.feed.directory)
            except Exception:  # the other process has no terminal on which to show the reason
                self.call_from_thread(self._notice, "the ranks could not be read", bad=True)
            else:
                self.call_from_thread(self._show_ranks, found)

        self.run_worker(do, thread=True, group="ranks", exclusive=True)

    def _show_ranks(self, ranks: exports.JobRanks | None) -> None:
        if ranks is None:
            self._notice("this run is no job of several processes")
        elif not isinstance(self.screen, Ranks):
            self.push_screen(Ranks(ranks, self._open_rank))

    def _open_rank(self, group: exports.RankGroup) -> None:
        """Show the report of the lowest rank (process of the job) of ``group``. The report is made in another
        process."""

        def do() -> None:
            try:
                text = self.feed.processes.call(exports.rank, group.directory)
            except Exception:  # the other process has no terminal on which to show the reason
                text = f"Rank {group.first} could not be read."
            self.call_from_thread(self.push_screen, Page(f"Rank {group.first}", text))

        self.run_worker(do, thread=True, group="ranks", exclusive=True)

    # -- files ------------------------------------------------------------------------------------

    async def action_export(self) -> None:
        """Let the user choose what to write to files."""
        able = [a for a in self.actions if a.id.startswith("export.")]
        columns = [
            Column[Action]("write", lambda a, _: a.words),
            Column[Action]("content", lambda a, _: [(a.help, "dim")]),
        ]

        def write(chosen: Action | None) -> None:
            if chosen is not None:
                self.call_after_refresh(self.run_action, chosen.does)

        await self.push_screen(Picker("Export", columns, lambda a: a.id, able), write)

    def action_export_text(self) -> None:
        lines = [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]
        self._write("txt", "\n".join([*lines, ""]))

    def action_export_svg(self) -> None:
        self._write("svg", self.export_screenshot(title=f"jaxscope {self.current_mode}"))

    def _write(self, ending: str, text: str) -> None:
        """Write ``text`` to a new file named after the run and the screen, with this ``ending``, and show its
        path or the error."""
        path = exports.free(self.feed.directory, f"{self.current_mode}.{ending}")
        try:
            files.write(path, text, mode=files.SHARED)
        except OSError as e:
            self._notice(f"{path}: {e.strerror}", bad=True)
        else:
            self._notice(f"written: {path}")

    def action_export_json(self) -> None:
        path = exports.free(self.feed.directory, "report.json")
        self._apart(path, exports.report, self.feed.directory, path)

    def action_export_programs(self) -> None:
        """Write the texts of the selected compilation, else of the latest of the selected function, else of
        the one that the program screen shows first."""
        run = self.feed.run
        c = run.compilations.get(self.compilation or "")
        if c is None or c.function.id != self.function:
            c = default(run, self.function)
        number = run.number(c) if c is not None else None
        if c is None or number is None:
            self._notice("no compilation is selected: press 2 for the list", bad=True)
            return
        out = exports.free(self.feed.directory, "texts")
        self._apart(out, exports.programs, self.feed.directory, c.function.id, number, out)

    def _apart(self, path: Path, work: Any, *arguments: Any) -> None:
        """Run ``work(*arguments)``, which writes to ``path``, in another process, so that no key is delayed.
        Notify the user when it has finished or failed."""

        def do() -> None:
            try:
                self.feed.processes.call(work, *arguments)
            except Exception:  # the other process has no terminal on which to show the reason
                self.call_from_thread(self._notice, f"{path} could not be written", bad=True)
            else:
                self.call_from_thread(self._notice, f"written: {path}")

        self._notice("writing …")
        self.run_worker(do, thread=True, group="export")

    def _notice(self, text: str, *, bad: bool = False) -> None:
        self.notify(escape(text), severity="error" if bad else "information", markup=False)

    async def action_quit(self) -> None:  # Textual's own ctrl+q does not ask
        await self.action_leave()

    async def action_leave(self) -> None:
        """Close the app. If this command started the program, which still runs, first ask whether it
        continues."""
        if isinstance(self.screen, Leave):
            return
        if self.owned and self.goes_on():
            await self.push_screen(Leave(), lambda choice: self.exit(choice) if choice else None)
        else:
            self.exit(None)
