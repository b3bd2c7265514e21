"""Compute a timeline of a run: when each function was traced, lowered and compiled.

The timeline has a row, called lane, for each of the user's functions, and one for all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from jaxscope.model import payers
from jaxscope.model.causes import recompiles
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run

PHASES = ("trace", "lower", "compile", "hit")
_NONE = np.empty((0, 4))
_LONGEST_NS = 1 << 62  # a damaged log may have numbers that do not fit into a NumPy integer


class Lane(msgspec.Struct, frozen=True, eq=False):
    """A row of the timeline: one ``function``, or if that is None, all functions that are not the user's.

    Attributes:
      members: the functions of the row.
      seconds: the seconds that tracing, lowering and compiling these functions took.
      recompiles: number of recompiles of these functions.
      spans: an array [n, 4], one row for each trace, lowering and compilation: begin, end (ns since the run
        began), number of the phase (0 trace, 1 lower, 2 compile, 3 load from the persistent cache), and 1 if
        it is the first phase of its call, else 0.
    """

    function: Function | None
    members: Sequence[Function]
    seconds: float
    recompiles: int
    spans: NDArray[np.float64]


def lanes(run: Run) -> list[Lane]:
    """Return the rows of the timeline: the user's functions, one row each, the slowest first, then one row
    for all other functions. Functions without recorded calls are left out."""
    begin = run.began_ns
    opened: dict[str, list[tuple[float, float, int, int]]] = {}
    for p in run.in_progress():
        if run.last_ns is not None and p.phase in PHASES:
            span = _time(p.since_ns), _time(run.last_ns), PHASES.index(p.phase), p.phase == "trace"
            opened.setdefault(p.compilation.function.id, []).append(span)

    def spans(functions: Sequence[Function]) -> NDArray[np.float64]:
        if begin is None:
            return _NONE
        parts = [_ended(f) for f in functions] + [np.array(opened[f.id]) for f in functions if f.id in opened]
        found: NDArray[np.float64] = np.concatenate(parts) - np.array([_time(begin), _time(begin), 0, 0])
        return found

    made = []
    others: list[Function] = []
    for f in run.functions.values():
        if f.compilations and f.user:
            made.append(Lane(f, [f], f.seconds, len(recompiles(f, run)), spans([f])))
        elif f.compilations:
            others.append(f)
    made.sort(key=lambda lane: (-lane.seconds, lane.function.id if lane.function else ""))
    if others:
        again = len(payers.recompiled_outside(run))
        made.append(Lane(None, others, sum(f.seconds for f in others), again, spans(others)))
    return made


def compilations(lane: Lane) -> list[Compilation]:
    """Return the calls in the row ``lane`` that traced, lowered or compiled, or tried to, in order of
    time."""
    found = [c for f in lane.members for c in f.compilations if c.phase or any(c.ended_phases())]
    return sorted(found, key=lambda c: (c.t_ns, c.id))


def extent(run: Run, c: Compilation) -> tuple[float, float] | None:
    """Return (begin of the first phase, end of the last one) of the compilation ``c``, in seconds since the
    run began. A phase in progress ends when the program was last known to be alive. Return None if no phase
    is known, or if it is unknown when the run began."""
    if run.began_ns is None:
        return None
    ended = [(t_ns / 1e9 - spent, t_ns / 1e9) for _, t_ns, spent in c.ended_phases()]
    if c.phase is not None and run.last_ns is not None:
        ended.append((c.phase_ns / 1e9, run.last_ns / 1e9))
    if not ended:
        return None
    begin = run.began_ns / 1e9
    return ended[0][0] - begin, max(end for _, end in ended) - begin


def slowest(run: Run, candidates: Sequence[Compilation]) -> Compilation | None:
    """Return the recompile in ``candidates`` that took longest; if there is no recompile, the compilation
    that took longest. None if ``candidates`` is empty."""
    again = [c for c in candidates if (run.number(c) or 0) > 1]
    return max(again or candidates, key=lambda c: c.seconds, default=None)


@cached_until_changed
def _ended(f: Function) -> NDArray[np.float64]:
    """Return the phases of ``f`` that have ended, as an array [n, 4]. The columns are begin and end (ns since
    the epoch), kind (index in PHASES), and 1 for the first phase of a call, else 0."""
    made = []
    for c in f.compilations:
        first = 1
        for phase, t_ns, spent in c.ended_phases():
            shown = "hit" if phase == "compile" and c.persistent_hit else phase
            end = _time(t_ns)
            made.append((end - spent * 1e9, end, PHASES.index(shown), first))
            first = 0
    return np.array(made) if made else _NONE


def _time(ns: int) -> float:
    """Return the time ``ns`` (nanoseconds) as float, limited to what fits into NumPy's integers."""
    return float(min(max(ns, -_LONGEST_NS), _LONGEST_NS))
