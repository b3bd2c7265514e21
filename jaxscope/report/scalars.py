"""Write figures of a run by training step, for dashboards. A step in which nothing was traced, lowered or
compiled and that has no snapshot of the live arrays is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from jaxscope.model import arrays, causes, metrics
from jaxscope.model.causes import recompiles
from jaxscope.model.run import Run
from jaxscope.report import contract
from jaxscope.report.json_report import compact


class Row(msgspec.Struct):
    """The figures of one training step.

    Attributes:
      step: the number of the step; null: the figures are from a time when no steps were counted.
      time_seconds: time of the first trace, lowering, compilation or snapshot of the step, in seconds since
        the recording began.
      compilations: number of compilations of all functions.
      compile_seconds: seconds of tracing, lowering and compiling. A trace inside another trace counts once.
      recompiles: number of calls that recompiled one of the user's functions.
      recompiles_by_cause: kind of the decisive cause (``shape``) -> number of these calls.
      total_recompiles: number of such calls from the beginning of the run to the end of this step.
      peak_bytes: the most memory on one device that a program compiled in this step needs; null: unknown, or
        none was compiled.
      live_bytes: bytes of the live arrays on all devices of the program's process, in the largest snapshot of
        the step; null: unknown, or the step has no snapshot.
    """

    step: int | None
    time_seconds: float
    compilations: int = 0
    compile_seconds: float = 0.0
    recompiles: int = 0
    recompiles_by_cause: dict[str, int] = {}
    total_recompiles: int = 0
    peak_bytes: int | None = None
    live_bytes: int | None = None


def rows(run: Run) -> list[Row]:
    """Return the figures of each training step in which JAX traced, lowered or compiled something or which
    has a snapshot of the live arrays, in order of time."""
    found: dict[int | None, Row] = {}
    again = {c.id for f in run.functions.values() if f.user for c in recompiles(f, run)}

    def row(step: int | None, t_ns: int) -> Row:
        at = run.seconds_at(t_ns) or 0.0
        known = found.setdefault(step, Row(step, at))
        known.time_seconds = min(known.time_seconds, at)
        return known

    for c in run.compilations.values():
        if not c.reached_phases:
            continue
        r = row(c.step, c.t_ns)
        r.compilations += "compiled" in c.reached
        r.compile_seconds += c.seconds if c.entry != "nested" else 0.0
        if c.id in again:
            kind = causes.of(run, c)[0].kind
            r.recompiles += 1
            r.recompiles_by_cause[kind] = r.recompiles_by_cause.get(kind, 0) + 1
        program = run.programs.get(c.program or "")
        peak = None if program is None else metrics.sizes(program.compiled)[1]
        r.peak_bytes = _larger(r.peak_bytes, peak)
    for s in arrays.of_main(run):
        r = row(s.step, s.t_ns)
        r.live_bytes = _larger(r.live_bytes, s.bytes)
    total = 0
    ordered = sorted(found.values(), key=lambda r: (r.time_seconds, r.step or 0))
    for r in ordered:
        total += r.recompiles
        r.total_recompiles = total
    return ordered


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a line of JSON that ``--metrics`` writes."""
    return contract.schema_of(Row, "jaxscope --metrics")


def _larger(a: int | None, b: int | None) -> int | None:
    return max(n for n in (a, b) if n is not None) if (a, b) != (None, None) else None


def lines(run: Run) -> Iterator[str]:
    """Yield a line of JSON for each training step, with its numbers."""
    for r in rows(run):
        yield compact(r) + "\n"
