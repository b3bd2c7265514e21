"""The collectives of all programs and what is known of the one under the cursor."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from jaxscope.report.phrases import count
from jaxscope.schema.keys import Frame
from jaxscope.tui.lineview import LineView
from jaxscope.tui.rows import collectives as rows
from jaxscope.tui.screens.frame import View, Words
from jaxscope.tui.tableview import TableView


class Collectives(View):
    NAME = "collectives"

    def panes(self) -> Iterable[Widget]:
        self.table: TableView[rows.Row] = TableView(
            (), rows.row_id, title="Collectives", id="collectives",
            about="Communication between devices in the compiled programs, the most bytes first. Enter shows the line in its program.",
        )  # fmt: skip
        yield self.table
        yield Words(id="detail")

    def fill(self) -> None:
        run, feed = self.feed.run, self.feed
        found = rows.rows(run, feed.texts)
        waiting = [p for p in run.programs.values() if p.texts and p.id not in feed.texts]
        read = [t for t in feed.texts.values() if t.hlo is not None]
        if waiting:
            self.table.empty = f"reading {len(waiting)} more programs …"
        elif read:
            devices = len(run.devices)
            where = "1 device" if devices == 1 else f"{devices} devices" if devices else "the devices"
            self.table.empty = f"None: the {len(read)} programs of this run on {where} do not communicate. ✓"
        else:
            self.table.empty = (
                "No compiled text was kept: record it with jaxscope run --ir all (the default)."
            )
        self.table.columns = tuple(rows.columns(run, self.feed.places()))
        self.table.show(found)
        self.table.entitle(
            "Collectives",
            f"{sum(len(r.alike) for r in found):,} in {count(len({r.program.id for r in found}), 'program')}"
            if found
            else "",
        )
        self._detail()

    def _detail(self) -> None:
        row = self.table.current
        run = self.feed.run
        self.words("detail").say(*(rows.detail(run, row, self.feed.places()) if row is not None else []))

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self._detail()

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        row = self.table.current
        if row is not None and row.program.compilations:
            c = row.program.compilations[0]
            self.scope.select(function=c.function.id, compilation=c.id, instruction=row.collective.name)
            self.scope.go("program")

    def place(self) -> Frame | None:
        row = self.table.current
        return row.collective.source if row is not None else None
