"""Show the findings, and the selected one in full: evidence, fix, and the page about its rule."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget

from jaxscope.log import store
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame
from jaxscope.tui import actions
from jaxscope.tui.actions import bindings
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import findings as rows
from jaxscope.tui.rows.overview import finding_id
from jaxscope.tui.screens.frame import View
from jaxscope.tui.tableview import TableView


class Findings(View):
    """The screen with the findings."""

    NAME = "findings"
    SCOPES = ("findings",)
    BINDINGS = bindings("findings")

    def panes(self) -> Iterable[Widget]:
        self.table: TableView[Finding] = TableView(
            (),
            finding_id,
            title="Findings",
            id="findings",
            about="What the rules found, errors first, then by cost. Enter opens the evidence.",
        )
        with Horizontal(id="columns"):
            yield self.table
            with VerticalScroll(id="right"):
                yield Paragraphs(id="detail")

    def fill(self) -> None:
        feed, app = self.feed, self.scope
        found = rows.shown(feed.findings, app.hidden)
        hidden = sum(f.code in app.hidden for f in feed.findings)
        self.table.empty = (
            "checking …"
            if feed.concluded < 0
            else "No problems found in the recorded part of the log, which was not closed."
            if feed.cut_off
            else "No problems found. ✓"
        )
        self.table.columns = tuple(rows.columns(feed.places(), feed.findings, app.hidden))
        self.table.show(found)
        if app.finding is not None and self.table.select(app.finding):
            app.finding = None
        self.table.entitle("Findings", f"{hidden} hidden" if hidden else "")
        self._detail()

    def _detail(self) -> None:
        f = self.table.current
        places, running = self.feed.places(), self.feed.running
        self.words("detail").say(*(rows.detail(f, places, running=running) if f is not None else []))

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self._detail()
        self.query_one("#right", VerticalScroll).scroll_home(animate=False)

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        """Open the evidence of the finding under the cursor on another screen: the first compilation or
        program that it names, or else the function. If the finding is from a sub-run (see ``Feed``), open
        that run in a second view."""
        f, run = self.table.current, self.feed.run
        if f is None:
            return
        seen = self.feed.feed_of(f)
        if seen is not self.feed:  # the other screens show the main run only, and know no ids of a sub-run
            name = shlex.quote(store.address(seen.directory))
            command = [sys.executable, "-m", "jaxscope", "view", str(seen.directory.path)]
            self.scope.outside(
                command, "jaxscope", f"This finding is from another run of this program: jaxscope view {name}"
            )
            return
        for e in f.evidence:
            c = run.compilations.get(e.compilation or "")
            if c is not None:
                self.scope.select(function=c.function.id, compilation=c.id)
                self.scope.go("functions")
                return
            program = run.programs.get(e.program or "")
            if program is not None and program.compilations:
                c = program.compilations[0]
                self.scope.select(function=c.function.id, compilation=c.id, place=e.source or f.source)
                self.scope.go("program")
                return
        if f.function in run.functions:
            self.scope.select(function=f.function)
            self.scope.go("functions")
        else:
            self.notify("This finding has no evidence to open.", markup=False)

    def action_hide(self) -> None:
        """Hide all findings with the code of the finding under the cursor, or show them again."""
        f = self.table.current
        if f is not None:
            self.scope.hidden ^= {f.code}
            self.app.clear_notifications()  # there may be an earlier notice about this code
            if f.code in self.scope.hidden:
                key = actions.key_of("findings.hide", self.scope.actions)
                self.notify(
                    f"{f.code} is hidden until you quit; {key} on its row shows it again",
                    timeout=3,
                    markup=False,
                )
            self.renew()

    def action_ignore(self) -> None:
        """Copy a configuration line for [tool.jaxscope.check] to the clipboard. The line ignores the code of
        the finding under the cursor and all codes that the user hid."""
        f = self.table.current
        if f is not None:
            line = rows.ignoring({*self.scope.hidden, f.code})
            self.app.copy_to_clipboard(line)
            self.notify(f"copied, for [tool.jaxscope.check]: {line}", timeout=5, markup=False)

    def place(self) -> Frame | None:
        f = self.table.current
        return f.source if f is not None else None
