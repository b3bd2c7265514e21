"""Show the live arrays of one snapshot by name, and the placement of the selected ones."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget

from jaxscope.schema.keys import Frame
from jaxscope.tui.actions import bindings
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import arrays as rows
from jaxscope.tui.rows import mesh
from jaxscope.tui.screens.frame import View
from jaxscope.tui.tableview import TableView


class Names(TableView[rows.Row]):
    """The table of the names of live arrays, as a tree whose rows can be opened and closed. With a filter,
    the table lists the groups of equal arrays without a tree, also those below closed names."""

    def search(self, needle: str) -> None:
        other = bool(needle) != bool(self.needle)
        super().search(needle)
        if other:
            self.post_message(self.Unfolded(self))

    class Unfolded(LineView.Moved):
        """Announce that a filter was set or removed, so that the screen changes between the list of all
        arrays and the tree of names."""


class Arrays(View):
    """The screen with the live arrays of one snapshot."""

    NAME = "arrays"
    SCOPES = ("arrays",)
    BINDINGS = bindings("arrays")

    def panes(self) -> Iterable[Widget]:
        self.snapshots = rows.Snapshots()
        self.at: int | None = None  # the snapshot that the user chose; None: that of Snapshots.default
        self.toggled: set[str] = set()
        self.table = Names(
            (),
            rows.row_id,
            title="Arrays",
            id="arrays",
            about=(
                "Live arrays by the names of your variables, the largest first; ●8 means 8 devices hold"
                " a copy. Enter opens a name or, on one array, the call that takes it. , and . show an"
                " earlier and a later snapshot."
            ),
        )
        with Horizontal(id="columns"):
            yield self.table
            with VerticalScroll(id="right"):
                yield Paragraphs(id="detail")
                yield Paragraphs(id="facts")
                yield Paragraphs(id="devices")

    @property
    def shown(self) -> int:
        """Return the index of the snapshot of the live arrays that the screen shows; -1: there is none."""
        if self.at is not None and self.at < len(self.snapshots.found):
            return self.at
        return self.snapshots.default(running=self.feed.running)

    def fill(self) -> None:
        run = self.feed.run
        self.snapshots.update(run)
        at = self.shown
        self.query_one("#right").display = at >= 0
        if at < 0:
            self.table.empty = self._absent()
            self.table.show([])
            return
        snapshot = self.snapshots.found[at]
        self.table.columns = tuple(rows.columns(self.snapshots, at, len(snapshot.by_device)))
        self.table.show(rows.tree(snapshot, self.toggled, flat=bool(self.table.needle)))
        self.table.empty = "No array was alive at that time."
        self.table.entitle(*rows.title(self.snapshots, at))
        self._detail()

    def _absent(self) -> str:
        """Return a text that says why there is no snapshot of the live arrays, or when one is taken."""
        options = self.feed.directory.meta.get("options")
        if isinstance(options, dict) and options.get("arrays") is False:
            return "Live arrays were not recorded: the program was run with --no-arrays."
        lost = next((d for d in self.feed.run.degraded if "array" in d.seam), None)
        if lost is not None:
            return f"Live arrays could not be recorded: {lost.reason}"
        if self.feed.running:
            return (
                "No snapshot of the live arrays yet. One is taken when a step ends (jaxscope.step(), or"
                " a function watched with step=True), at jaxscope.snapshot(), and at the end."
            )
        return "No snapshot of the live arrays was taken: the program ended before one, or was killed."

    def _detail(self) -> None:
        """Show name, placement and facts of the arrays under the cursor, and the bytes on each device."""
        row, at = self.table.current, self.shown
        if row is None or at < 0:
            for id in ("detail", "facts", "devices"):
                self.words(id).say()
            return
        width = max(24, self.query_one("#right").size.width - 3)
        drawn = mesh.drawn(row.largest, width)
        self.words("detail").say(*rows.heading(row), *([[]] if len(drawn) > 1 else []), *drawn)
        self.words("facts").say([], *rows.facts(row, self.snapshots, self.feed.places()))
        bars = mesh.devices(self.snapshots.found[at], width)
        self.words("devices").say(*([[], *bars] if bars else []))

    def on_names_unfolded(self, event: Names.Unfolded) -> None:
        self.fill()
        self.foot()

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self._detail()
        self.query_one("#right", VerticalScroll).scroll_home(animate=False)

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        row = self.table.current
        if row is None:
            return
        if row.open is not None:
            self.toggled ^= {row.id}
            self.fill()
            return
        c = rows.user(self.feed.run, row)
        if c is not None:
            self.scope.select(function=c.function.id, compilation=c.id)
            self.scope.go("functions")
        else:
            self.notify(
                "No recorded call takes an array of this name; o opens the line that created it.",
                markup=False,
            )

    def action_look(self, by: int) -> None:
        """Show the snapshot ``by`` places after the current one (before it, if negative). After a step to the
        latest snapshot of a running program, the screen shows new snapshots as they come."""
        if self.shown < 0:
            return
        to = max(0, self.shown + by)
        self.at = to if to < len(self.snapshots.found) - 1 or not self.feed.running else None
        if self.at is not None:
            self.at = min(self.at, len(self.snapshots.found) - 1)
        self.fill()

    def place(self) -> Frame | None:
        row = self.table.current
        return row.largest.origin if row is not None else None
