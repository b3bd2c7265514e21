"""Show the time spent compiling, what compiles now, the findings and the latest compilations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget

from jaxscope.model import timeline
from jaxscope.model.run import Run
from jaxscope.present.text import count
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame
from jaxscope.tui.actions import bindings
from jaxscope.tui.cells import Part
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import death, functions, lanes, run_facts, source_lines
from jaxscope.tui.rows import findings as finding_rows
from jaxscope.tui.rows import overview as rows
from jaxscope.tui.rows import program as program_rows
from jaxscope.tui.screens.frame import View
from jaxscope.tui.tableview import TableView
from jaxscope.tui.timelineview import TimelineView

Lines = list[list[Part]]


def _none_found(run: Run, *, running: bool) -> str:
    compiled = count(sum(f.user and f.compiled > 0 for f in run.functions.values()), "function")
    return f"No problems found{' so far' if running else ''} ({compiled} of yours compiled)."


class Overview(View):
    """The first screen: the timeline, the findings and the latest compilations."""

    NAME = "overview"
    SCOPES = ("timeline",)
    BINDINGS = bindings("timeline")

    def panes(self) -> Iterable[Widget]:
        self.axis: lanes.Axis | None = None  # the part of the run that is drawn; None: all of it
        self.lanes = TimelineView(
            title="Compile time", id="lanes",
            empty="Nothing was compiled yet. Did the program import jax?",
            about="When each function was traced, lowered and compiled. A tick or a number marks the start of"
                  " a compilation. ← and → choose a compilation, which the line below describes; the mouse"
                  " shows those under it. Enter opens the function.",
        )  # fmt: skip
        self.findings: TableView[Finding] = TableView(
            rows.FINDING_COLUMNS, rows.finding_id, title="Findings", id="advice",
            about="What the rules found, the one that costs most first. Enter opens the finding.",
        )  # fmt: skip
        self.latest: TableView[rows.Event] = TableView(
            rows.EVENT_COLUMNS, lambda e: e.id, title="Latest compilations", id="latest",
            empty="No compilation of your functions yet.",
            about="Compilations of your functions, the latest first, each with its cause.",
        )  # fmt: skip
        yield Paragraphs(id="now")
        with Vertical(id="timeline"):
            yield self.lanes
            yield Paragraphs(id="chosen")
            yield Paragraphs(id="steps")
        with Horizontal(id="columns"):
            with Vertical(id="left"):
                yield self.findings
                yield Paragraphs(id="advised")
            with Vertical(id="right"):
                yield self.latest
                yield Paragraphs(id="compiled")

    def fill(self) -> None:
        run, feed = self.feed.run, self.feed
        found = timeline.lanes(run)
        self.lanes.show_run(run, feed.places(), found, self._axis())
        if not feed.running:
            self.lanes.empty = "Nothing was compiled. Did the program import jax and call a jitted function?"
            self.latest.empty = "None of your own functions is jitted."
        self.lanes.entitle("Compile time", "░ trace  ▒ lower  █ compile  ▁ cache hit")
        shown = [f for f in feed.findings if f.code not in self.scope.hidden]
        self.findings.empty = (
            "checking …"
            if feed.concluded < 0
            else _none_found(run, running=feed.running)
            if not shown
            else ""
        )
        self.findings.show(shown)
        # Not more lines than needed, because the details of the selected finding are shown below.
        room = self.size.height
        self.findings.styles.height = (
            "1fr" if self.narrow and not self.short else max(4, min(len(shown) + 2, room // 3))
        )
        latest = rows.latest(run)
        self.latest.show(latest)
        self.latest.styles.height = "1fr" if self.narrow else max(4, min(len(latest) + 2, room // 3))
        self._advise()
        self._compiled()
        self._choose()
        with_steps = rows.last_step(run) > 0 and not self.narrow
        below = 4 if with_steps else 1
        self.query_one("#timeline").styles.height = (
            min(len(found) + 2, max(4, room // (3 if shown else 2) - below)) + below
        )
        if with_steps:
            self.words("steps").say_for_size(lambda size: rows.steps(run, size.width))
        else:
            self.words("steps").say()

    def tick(self) -> None:
        super().tick()
        if self.feed.ready:
            run = self.feed.run
            died = death.why(run, self.scope.output_tail(), self.feed.places(), brief=self.narrow)
            if self.narrow:
                died = died[: 3 if self.short else 5]
            rest = [
                rows.now(run, self.feed.places(), running=self.feed.running),
                rows.waited(run, self.feed.places()),
                rows.step_time(run, self.feed.places()),
                rows.line_times(run, self.feed.places()),
            ]
            self.words("now").say(*died, *(p for p in rest if p and not self.short))

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        if self.short and self.focused in (None, self.lanes, self.latest):  # a short screen hides both
            self.findings.focus()

    def _advise(self) -> None:
        """Show the finding under the cursor in full, because its row rarely has room for it, and the source
        lines around its line. Below, or if there is no finding, show facts about the run."""
        f, feed = self.findings.current, self.feed
        found = finding_rows.seen(f, feed.places(), running=feed.running) if f is not None else []
        if self.narrow:
            self.words("advised").say(*(found if self.short else []))
            return
        source = (feed.feed_of(f).run, f.source) if f is not None else (feed.run, None)
        more = run_facts.sections(feed.run, feed.places())

        def make(size: Size) -> Lines:
            return run_facts.below(self._with_source(found, *source, size), more, size.width, size.height)

        if found or more:
            self.words("advised").say_for_size(make)
        else:
            self.words("advised").say()

    def _compiled(self) -> None:
        """Show the compilation under the cursor: its cause, its line, a summary of its program, and the lines
        of the source around it."""
        event, run = self.latest.current, self.feed.run
        if event is None or self.narrow:
            self.words("compiled").say()
            return
        c = event.compilation
        program = run.programs.get(c.program or "")
        texts = self.feed.texts.get(program.id) if program is not None else None
        where: list[Part] = [(functions.where(c, self.feed.places()), "dim")]
        facts: Lines = [functions.reasons(run, c), where, [], program_rows.summary(run, c, program, texts)]
        self.words("compiled").say_for_size(partial(self._with_source, facts, run, c.site))

    def _with_source(self, facts: Lines, run: Run, frame: Frame | None, size: Size) -> Lines:
        """Return ``facts``, and below them the source lines around ``frame``. Return only ``facts`` if a
        pane of this ``size`` has no room for source lines, or if the source cannot be shown."""
        count = source_lines.room(facts, size.width, size.height)
        lines = source_lines.around(run, frame, count, size.width)
        return [*facts, [], *lines] if lines else facts

    def _axis(self) -> lanes.Axis:
        return self.axis or lanes.Axis(self.feed.run.seconds or 0.0)

    def _choose(self) -> None:
        """Describe the compilation that is chosen in the timeline."""
        words = self.lanes.words()
        keys = "  ← →  " if len(self.lanes.choices()) > 1 else "  "
        self.words("chosen").say([(keys, "key"), words] if words else [])

    def action_zoom_time(self, closer: int) -> None:
        whole = self.feed.run.seconds or 0.0
        axis = (self.axis or lanes.Axis(whole)).zoomed(self.lanes.current, whole, closer=closer > 0)
        self.axis = axis if axis.length < whole else None
        self.lanes.scale(self._axis())

    def action_move_time(self, by: int) -> None:
        if self.axis is not None:
            self.axis = self.axis.moved(by, self.feed.run.seconds or 0.0)
            self.lanes.scale(self._axis())

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self._advise()
        self._compiled()
        self._choose()

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        app = self.scope
        lane, finding, latest = self.lanes.current, self.findings.current, self.latest.current
        chosen = self.lanes.chosen
        if event.view is self.lanes and lane is not None:
            function = chosen.function if chosen is not None else lane.members[0]
            app.select(function=function.id, compilation=chosen.id if chosen is not None else None)
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
        return lane.function.defined if lane is not None and lane.function is not None else None
