"""Draw when each function was traced, lowered and compiled, as blocks on the time axis of the run."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.timeline import PHASES, Lane, compilations, extent
from jaxscope.present.functions import UNKNOWN_YET, in_a_line, known_cause
from jaxscope.present.text import Places, function_name, seconds
from jaxscope.tui.cells import Cell, Column, Part, number_column

GLYPHS = dict(zip(PHASES, "░▒█▁", strict=True))
LONG = 200  # characters that are enough for a name
SHORTEST_S = 1e-3  # the shortest part of the run that can be drawn


class Axis(msgspec.Struct, frozen=True):
    """The part of the run that is drawn: it lasts ``length`` seconds and begins ``begin`` seconds after the
    start of the run."""

    length: float
    begin: float = 0.0

    def zoomed(self, lane: Lane | None, whole: float, *, closer: bool) -> Axis:
        """Return an axis with half or twice the length, around the same middle. Return this axis unchanged if
        half its length would be less than SHORTEST_S seconds.

        Args:
          lane: the phases (tracing, lowering, compiling) of one function. If the length is halved, the new
            middle is the median start of the phases that begin on this axis. None: keep the middle.
          whole: the length of the run in seconds, which the new axis does not exceed.
          closer: whether to halve the length; otherwise it is doubled.
        """
        length = self.length / 2 if closer else self.length * 2
        if length >= whole or length < SHORTEST_S:
            return Axis(whole) if length >= whole else self
        middle = self.begin + self.length / 2
        if lane is not None and len(lane.spans) and closer:
            starts = lane.spans[:, 0] / 1e9
            inside = starts[(starts >= self.begin) & (starts < self.begin + self.length)]
            middle = float(np.median(inside)) if len(inside) else middle
        return Axis(length, min(max(0.0, middle - length / 2), whole - length))

    def moved(self, by: float, whole: float) -> Axis:
        """Return the axis moved by ``by`` times its length, to later times if ``by`` is positive. The result
        stays within the run, which lasts ``whole`` seconds."""
        return Axis(self.length, min(max(0.0, self.begin + by * self.length), max(0.0, whole - self.length)))


def bar(lane: Lane, axis: Axis, width: int, mark: float | None = None) -> list[Part]:
    """Draw the phases in ``lane`` (tracing, lowering, compiling) as ``width`` characters for the part
    ``axis`` of the run. ``lane`` has the phases of one function, or of all functions that are not the user's.

    A character shows the phase that took most of its time. For one function, it may show instead that several
    compilations start there (their number), or one without a pause before it (a tick). The character at
    ``mark`` seconds after the start of the run is drawn in reverse; None: none is.
    """
    if axis.length <= 0 or width <= 0:
        return []
    share = np.zeros((len(PHASES), width))
    low, high = np.clip((lane.spans[:, :2] / 1e9 - axis.begin) / axis.length * width, -1, width).T
    phase = lane.spans[:, 2].astype(np.int64)
    first, last = low.astype(np.int64), np.minimum(high.astype(np.int64), width - 1)
    inside = (high >= 0) & (first < width)
    first = np.maximum(first, 0)
    for n in range(len(PHASES)):
        narrow = inside & (phase == n) & (first == last)  # within one character: most phases, if many
        took = np.maximum(high[narrow] - low[narrow], 1e-9)
        share[n] += np.bincount(first[narrow], took, width)
    for at in np.flatnonzero(inside & (first < last)):
        columns = np.arange(first[at], last[at] + 1)
        part = np.minimum(high[at], columns + 1) - np.maximum(low[at], columns)
        share[phase[at], columns] += np.maximum(part, 1e-9)
    most = np.where(share.any(axis=0), share.argmax(axis=0), -1)
    made: list[Part] = [(GLYPHS[PHASES[n]], PHASES[n]) if n >= 0 else ("·", "dim") for n in most]
    begun = low[lane.spans[:, 3] == 1]
    starts = np.bincount(begun[(begun >= 0) & (begun < width)].astype(np.int64), minlength=width)
    for at in np.flatnonzero(starts) if lane.function is not None else ():
        if starts[at] > 1:
            made[at] = (str(starts[at]) if starts[at] < 10 else "+", "retrace")
        elif at > 0 and most[at - 1] >= 0:
            made[at] = ("│", "retrace")
    place = _place(mark, axis, width) if mark is not None else -1.0
    if 0 <= place < width:
        made[int(place)] = (made[int(place)][0], "tab")
    return made


def _place(when: float, axis: Axis, width: int) -> float:
    """Return the position of ``when`` (seconds after the start of the run) on a time axis of ``width``
    characters, in characters."""
    return (when - axis.begin) / axis.length * width


def under(run: Run, lane: Lane, axis: Axis, width: int, at: int) -> list[Compilation]:
    """Return the compilations that one character of a lane's bar shows (its index in ``bar(lane, axis,
    width)`` is ``at``): those that begin there, or if there are none, those in progress there."""
    if axis.length <= 0 or width <= 0:
        return []
    begin, last = [], []
    for c in compilations(lane):
        extent_of = extent(run, c)
        if extent_of is None:
            continue
        low, high = (_place(when, axis, width) for when in extent_of)
        if at <= low < at + 1:
            begin.append(c)
        elif low < at <= high:
            last.append(c)
    return begin or last


def words(run: Run, c: Compilation, places: Places) -> str:
    """Return a line about the compilation ``c``: its name, step, seconds, cause and line. The cause is left
    out if jaxscope has not compared the cache key with earlier keys yet."""
    return in_a_line(run, c, places, cause=known_cause(run, c) != UNKNOWN_YET)


def columns(axis: Axis, mark: Callable[[Lane], float | None]) -> list[Column[Lane]]:
    """Return the columns of the timeline. ``mark`` takes a lane and returns the time that is drawn in
    reverse, in seconds after the start of the run; None: no time of this lane."""
    return [
        Column("function", name, 20, order=lambda lane: name(lane, LONG)),
        number_column("recompiles", lambda lane: lane.recompiles, again, 10),
        number_column("time", lambda lane: lane.seconds, lambda s: [(seconds(s), "bold")], 8),
        Column(
            f"{seconds(axis.begin) if axis.begin else 0} … {seconds(axis.begin + axis.length)}",
            lambda lane, width: bar(lane, axis, width, mark(lane)),
            found=False,
        ),
    ]


def name(lane: Lane, width: int) -> str:
    """Return the name of the function of ``lane``. For the lane of all other functions: ``(12 outside your
    functions)``, or a shorter text if ``width`` characters are too few."""
    if lane.function is not None:
        return function_name(lane.function)
    whole = f"({len(lane.members):,} outside your jitted functions)"
    return whole if len(whole) <= width else f"({len(lane.members):,} outside yours)"


def ident(lane: Lane) -> str:
    return lane.function.id if lane.function is not None else ""


def again(n: int) -> Cell:
    return [(f"▲ {n:,}", "retrace")] if n else [("·", "dim")]
