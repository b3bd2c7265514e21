"""Show the collectives of all programs, and what is known about the selected ones."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal
from textual.widget import Widget

from jaxscope.model.records import Compilation
from jaxscope.present.text import Places, count
from jaxscope.schema.keys import Frame
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import collectives as rows
from jaxscope.tui.rows import machines, source_lines
from jaxscope.tui.rows.program import default
from jaxscope.tui.screens.machines import ByMachine
from jaxscope.tui.tableview import TableView

TAKEN = 8  # lines of the screen that header, tabs, titles and footer need
SHARE = 0.6  # largest share of the screen's lines for the details


class Collectives(ByMachine):
    """The screen with the collectives of all programs for one machine."""

    NAME = "collectives"

    def panes(self) -> Iterable[Widget]:
        self.table: TableView[rows.Row] = TableView(
            (), rows.row_id, title="Collectives", id="collectives",
            about="Communication between devices in the compiled programs, the most bytes first."
                  " Enter shows the line in its program.",
        )  # fmt: skip
        yield Paragraphs(id="machines")
        yield self.table
        with Horizontal(id="below"):
            yield Paragraphs(id="detail")
            yield Paragraphs(id="mesh")

    def compilation_to_compare(self) -> Compilation | None:
        """Return the compilation to compare across all machines: the one of the row under the cursor, or else
        the latest of the selected function, or else the one that the program screen shows first."""
        run, row = self.feed.run, self.table.current
        if row is not None and row.program.compilations:
            c = machines.counterpart(row.program.compilations[0], self.machine().recording.run, run)
            if c is not None:
                return c
        return default(run, self.scope.function)

    def fill(self) -> None:
        machine = self.machine()
        run, texts = machine.recording.run, machine.recording.texts
        programs = machines.programs(machine)
        found = rows.rows(programs, texts)
        self.say_machines(None)
        if machine.name is None:
            self.table.empty = self._nothing()
        else:
            self.table.empty = machines.no_collectives(machine)
        self.table.columns = tuple(rows.columns(run, self.places()))
        self.table.show(found)
        total = (
            f"{sum(len(r.alike) for r in found):,} in {count(len({r.program.id for r in found}), 'program')}"
        )
        whose = "" if machine.name is None else f", for {machines.display_name(machine)}"
        self.table.entitle(f"Collectives{whose}", total if found else "")
        self._detail()

    def _nothing(self) -> str:
        """Return a text that says why no collectives of the programs that ran are listed."""
        run, feed = self.feed.run, self.feed
        waiting = [p for p in run.programs.values() if p.texts and p.id not in feed.texts]
        read = [p for p in run.programs if p in feed.texts and feed.texts[p].hlo is not None]
        if waiting:
            return f"reading {count(len(waiting), 'more program')} …"
        if read:
            devices = len(run.devices)
            where = "1 device" if devices == 1 else f"{devices} devices" if devices else "the devices"
            if len(read) < len(run.programs):
                which = f"{len(read):,} of {count(len(run.programs), 'program')} have a recorded text"
                return f"None: no program with a recorded text communicates ({which}; {where}). ✓"
            return f"None: no program of this run communicates ({count(len(read), 'program')} on {where}). ✓"
        return "No compiled text was recorded: use jaxscope run --ir all (the default)."

    def places(self) -> Places:
        return self.machine().recording.places()

    def _detail(self) -> None:
        """Show the facts about the selected collectives, their source line and the mesh of their program."""
        row, recording = self.table.current, self.machine().recording
        self.query_one("#below").display = row is not None
        if row is None:
            self.words("detail").say()
            self.words("mesh").say()
            return
        facts = rows.detail(recording.run, row, self.places())
        width = self.size.width - 3 if self.narrow else self.size.width // 2 - 3
        height = min(int(SHARE * self.size.height), self.size.height - self.table.line_count - TAKEN)
        count = 0 if self.narrow else source_lines.room(facts, width, height)
        lines = source_lines.around(recording.run, row.collective.source, count, width)
        self.words("detail").say(*facts, *([[], *lines] if lines else []))
        drawn = rows.mesh(row, recording.texts, width)
        self.words("mesh").say(*(drawn[: 0 if self.short else 4] if self.narrow else drawn))

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self._detail()

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        row = self.table.current
        if row is None or not row.program.compilations:
            return
        c = machines.counterpart(row.program.compilations[0], self.machine().recording.run, self.feed.run)
        if c is not None:
            self.scope.select(function=c.function.id, compilation=c.id, instruction=row.collective.name)
            self.scope.go("program")

    def place(self) -> Frame | None:
        row = self.table.current
        return row.collective.source if row is not None else None
