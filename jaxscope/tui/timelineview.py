"""Define the pane with the timeline: a table of functions, with blocks on the time axis of the run. One
compilation of the current row is chosen, and the mouse shows the compilations under it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Leave, MouseMove

from jaxscope.model import timeline
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.timeline import Lane
from jaxscope.present.escape import escape
from jaxscope.present.text import Places, count
from jaxscope.tui.rows import lanes
from jaxscope.tui.tableview import TableView

MOST = 6  # compilations that a tooltip names


class TimelineView(TableView[Lane]):
    """Show when each function was traced, lowered and compiled.

    Attributes:
      axis: the part of the run that is drawn.
      run: the run that is drawn; None: none yet.
    """

    def __init__(self, *, title: str, empty: str, about: str, id: str) -> None:
        self.axis = lanes.Axis(0.0)
        super().__init__(
            lanes.columns(self.axis, self._mark), lanes.ident, title=title, empty=empty, about=about, id=id
        )
        self.run: Run | None = None
        self._places: Places | None = None
        self._chosen: str | None = None  # the id of the compilation that a key has chosen
        self._able: tuple[Lane | None, list[Compilation]] = None, []  # a row, and its compilations

    def show_run(self, run: Run, places: Places, rows: Sequence[Lane], axis: lanes.Axis) -> None:
        """Show ``rows``, the functions of ``run``, on the time axis ``axis``. ``places`` shortens file
        names."""
        self.run, self._places = run, places
        self.scale(axis)
        self.show(rows)

    def scale(self, axis: lanes.Axis) -> None:
        """Draw the part ``axis`` of the run."""
        self.axis = axis
        self.columns = tuple(lanes.columns(axis, self._mark))
        self.forget()

    @property
    def chosen(self) -> Compilation | None:
        """Return the compilation of the current row that the user has chosen, or else its recompile that took
        longest, or else its slowest compilation. None if the table is empty."""
        able = self.choices()
        if self.run is None:
            return None
        return next((c for c in able if c.id == self._chosen), None) or timeline.slowest(self.run, able)

    def choices(self) -> list[Compilation]:
        """Return the compilations of the current row, in order of time."""
        lane = self.current
        if lane is not self._able[0]:  # the rows are new objects whenever the run has changed
            self._able = lane, timeline.compilations(lane) if lane is not None else []
        return self._able[1]

    def words(self) -> str:
        """Return a line about the chosen compilation: its name, step, seconds, cause and line. Empty if there
        is none."""
        c = self.chosen
        if c is None or self.run is None or self._places is None:
            return ""
        return lanes.words(self.run, c, self._places)

    def action_aside(self, by: int) -> None:
        """Choose the next compilation of the current row, or with a negative ``by`` the previous one."""
        able, now = self.choices(), self.chosen
        if now is None:
            return
        at = max(0, min(able.index(now) + by, len(able) - 1))
        self._chosen = able[at].id
        self.redraw(self.cursor)
        self.post_message(self.Moved(self))

    def _mark(self, lane: Lane) -> float | None:
        """Return when the chosen compilation began, in seconds since the run began. None if ``lane`` is not
        the current row."""
        c = self.chosen if lane is self.current else None
        extent = timeline.extent(self.run, c) if c is not None and self.run is not None else None
        return extent[0] if extent is not None else None

    def mark_of(self, line: int) -> object:
        return super().mark_of(line), self._chosen if line == self.cursor else None

    # -- mouse ------------------------------------------------------------------------------------

    def on_mouse_move(self, event: MouseMove) -> None:
        found = self._under(event)
        if self.run is None or self._places is None or not found:
            self.tooltip = None
            return
        words = [lanes.words(self.run, c, self._places) for c in found[:MOST]]
        if len(found) > MOST:
            words.append(f"and {count(len(found) - MOST, 'more compilation')}")
        self.tooltip = Content("\n".join(map(escape, words)))

    def on_leave(self, event: Leave) -> None:
        self.tooltip = None

    def _under(self, event: MouseMove) -> list[Compilation]:
        """Return the compilations under the mouse."""
        at = event.get_content_offset(self)
        if at is None or self.run is None:
            return []
        line = self.scroll_offset.y + at.y - self.heading
        shown = self.shown(self.scrollable_content_region.width)
        left = 2 + sum(size + 2 for _, size in shown[:-1])
        if at.y < self.heading or not 0 <= line < len(self.items) or not left <= at.x < left + shown[-1][1]:
            return []
        return lanes.under(self.run, self.items[line], self.axis, shown[-1][1], at.x - left)
