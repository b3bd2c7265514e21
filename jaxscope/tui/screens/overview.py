"""Where the time went, what compiles now, what to change, what happened last."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from jaxscope.report.phrases import count
from jaxscope.schema.findings import NOTE, Finding
from jaxscope.schema.keys import Frame
from jaxscope.tui.cells import Part
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import death, lanes
from jaxscope.tui.rows import overview as rows
from jaxscope.tui.screens.frame import View
from jaxscope.tui.tableview import TableView


class Overview(View):
    NAME = "overview"

    def panes(self) -> Iterable[Widget]:
        self.lanes: TableView[lanes.Lane] = TableView(
            lanes.columns(lanes.Axis(0.0)), lanes.ident, title="Compile time", id="lanes",
            empty="Nothing was compiled yet. If nothing ever is: did the program import jax?",
            about="Each function's time on the axis of the whole run. Enter opens the function.",
        )  # fmt: skip
        self.findings: TableView[Finding] = TableView(
            rows.FINDING_COLUMNS, rows.finding_id, title="What to change", id="advice",
            about="What the rules found, the worst first. Enter shows evidence and fix.",
        )  # fmt: skip
        self.latest: TableView[rows.Event] = TableView(
            rows.EVENT_COLUMNS, lambda e: e.id, title="Latest", id="latest",
            empty="No compilation of your functions yet.",
            about="Compilations of your functions, the latest first, each with its cause.",
        )  # fmt: skip
        yield Paragraphs(id="now")
        with Horizontal(id="columns"):
            with Vertical(id="left"):
                yield self.lanes
                yield Paragraphs(id="steps")
            with Vertical(id="right"):
                yield self.findings
                yield Paragraphs(id="advised")
                yield self.latest

    def fill(self) -> None:
        run, feed = self.feed.run, self.feed
        self.lanes.columns = tuple(lanes.columns(lanes.Axis(run.seconds or 0.0)))
        self.lanes.show(lanes.lanes(run))
        if not feed.running:
            self.lanes.empty = "Nothing was compiled. Did the program import jax, and call what it jits?"
            self.latest.empty = "None of your functions was compiled."
        self.lanes.entitle("Compile time", "░ trace  ▒ lower  █ compile  ▁ cache hit")
        told = [f for f in feed.findings if f.code not in self.scope.hidden]
        serious = [f for f in told if f.severity != NOTE]
        self.findings.empty = (
            "looking …" if feed.concluded < 0 else "Nothing to change was found." if not told else ""
        )
        self.findings.show(serious or told)
        rest = len(told) - len(serious) if serious else 0
        self.findings.entitle("What to change", f"and {count(rest, 'note')}: 6" if rest else "")
        # No more room than it needs: what happened last stands right below.
        self.findings.styles.height = (
            "2fr" if self.narrow else max(4, min(len(serious or told) + 2, self.size.height // 3))
        )
        self._advise()
        self.latest.show(rows.latest(run))
        width = max(20, self.query_one("#steps").size.width)
        title = rows.steps_title(run, width)
        heading: list[Part] = [(f" {title}", "dim")]
        self.words("steps").say(*([heading, rows.steps(run, width)] if title else []))

    def tick(self) -> None:
        super().tick()
        if self.feed.ready:
            run = self.feed.run
            died = death.why(run, self.scope.output_tail(), self.feed.places(), brief=self.narrow)
            if self.narrow:
                died = died[:5]
            now = rows.now(run, running=self.feed.running)
            self.words("now").say(*died, *([p for p in (now, rows.waited(run, self.feed.places())) if p]))

    def _advise(self) -> None:
        """The finding under the cursor in full: its row rarely has room for it."""
        f = self.findings.current
        fix: list[Part] = [("→ ", "good"), f.fix] if f is not None and f.fix else []
        said: list[Part] = [f.title, "."] if f is not None else []
        self.words("advised").say(*([said, fix] if said and not self.narrow else []))

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self._advise()

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        app = self.scope
        lane, finding, latest = self.lanes.current, self.findings.current, self.latest.current
        if event.view is self.lanes and lane is not None:
            app.select(function=lane.members[0].id)
            app.go("functions")
        elif event.view is self.findings and finding is not None:
            app.finding = rows.finding_id(finding)
            app.go("findings")
        elif event.view is self.latest and latest is not None:
            app.select(function=latest.compilation.function.id, compilation=latest.compilation.id)
            app.go("functions")

    def place(self) -> Frame | None:
        view = self.focused_view()
        finding, latest, lane = self.findings.current, self.latest.current, self.lanes.current
        if view is self.findings and finding is not None:
            return finding.source
        if view is self.latest and latest is not None:
            return latest.compilation.site
        seen = lane.function.seen if lane is not None and lane.function is not None else None
        return (
            Frame(seen.file, seen.line, seen.name) if seen is not None and seen.file and seen.line else None
        )
