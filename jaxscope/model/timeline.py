"""Lay the phases of a run on the axis of its time: a lane for each of the user's functions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from jaxscope.model import payers
from jaxscope.model.causes import recompilations
from jaxscope.model.records import Function, cached_until_changed
from jaxscope.model.run import Run

PHASES = ("trace", "lower", "compile", "hit")
_NONE = np.empty((0, 4))
_LONGEST_NS = 1 << 62  # a damaged log has numbers that no array of integers takes


class Lane(msgspec.Struct, frozen=True, eq=False):
    """One function on the time axis; ``None``: all functions that are not the user's.

    Attributes:
      spans: an array [n, 4]: begin and end (ns since the run began), the index of the phase, and whether a
        compilation begins with this phase.
    """

    function: Function | None
    members: Sequence[Function]
    seconds: float
    recompiles: int
    spans: NDArray[np.float64]


def lanes(run: Run) -> list[Lane]:
    """Return a lane for each of the user's functions, slowest first, then one for all other functions."""
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
            made.append(Lane(f, [f], f.seconds, len(recompilations(f)), spans([f])))
        elif f.compilations:
            others.append(f)
    made.sort(key=lambda lane: (-lane.seconds, lane.function.id if lane.function else ""))
    if others:
        again = len(payers.recompiled_outside(run))
        made.append(Lane(None, others, sum(f.seconds for f in others), again, spans(others)))
    return made


@cached_until_changed
def _ended(f: Function) -> NDArray[np.float64]:
    """Return start and end of each ended phase (wall clock, ns).

    A phase starts where the one before it ended.
    """
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
    return float(min(max(ns, -_LONGEST_NS), _LONGEST_NS))
