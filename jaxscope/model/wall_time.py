"""Divide the wall time of a run: before the first compilation, compiling, waiting for devices, the rest."""

from __future__ import annotations

import msgspec

from jaxscope.model import line_times, transfers
from jaxscope.model.records import Process
from jaxscope.model.run import Run
from jaxscope.schema.line_times import CALLING, WAITING


class WallTime(msgspec.Struct, frozen=True):
    """The wall time of a run, divided by what its main process did. The parts add up to ``seconds``.

    Attributes:
      seconds: seconds that the program ran, as far as known (``Run.seconds``).
      before_compiling: seconds until the first trace, lowering or compilation began: imports and set-up.
      compiling: seconds during which something was traced, lowered or compiled.
      waiting: seconds in which the program waited for the devices, as far as measured. None: unknown; these
        seconds are then in ``rest``.
      rest: the other seconds.
    """

    seconds: float
    before_compiling: float
    compiling: float
    waiting: float | None
    rest: float


def wall_time(run: Run) -> WallTime | None:
    """Return the parts of the wall time of the run. None if nothing was compiled, if the main process was not
    recorded or its recording stopped early, or if the time before and during compilation is more than the
    whole."""
    process, total, compiling, first = run.main, run.seconds, run.compiling_seconds, _first_phase(run)
    if process is None or not run.main_recorded or process.stopped is not None or first is None:
        return None
    if not total or not compiling:
        return None
    before = max(0, first - (run.program_began_ns or first)) / 1e9
    left = total - before - compiling
    if left < 0:
        return None
    waiting = _waiting(run, process, first)
    if waiting is not None and waiting > left:
        waiting = None
    # The larger of two measurements. Samples also show waits in calls of jitted functions.
    sampled = _sampled(run)
    if sampled is not None and sampled > (waiting or 0.0):
        waiting = min(sampled, left)
    return WallTime(total, before, compiling, waiting, left - (waiting or 0.0))


def _first_phase(run: Run) -> int | None:
    """Return when the main process first began to trace, lower or compile (ns since the epoch). None if it
    never did."""
    process = run.main
    if process is None:
        return None
    opened = [p.since_ns for p in run.lasting() if p.compilation.process is process]
    return min([*opened, *process.phases.begins()[:1]], default=None)


def _sampled(run: Run) -> float | None:
    """Return the seconds in which samples show the main thread waiting for the devices: for a value, or
    asleep in a call of a jitted function, which waits for earlier work. None if there are too few samples."""
    found = [
        (t.seconds, t.samples) if doing == WAITING else (t.blocked, round(t.samples * t.blocked / t.seconds))
        for doing, t in line_times.entries(run)
        if t.seconds and (doing == WAITING or (doing == CALLING and t.blocked))
    ]
    return sum(s for s, _ in found) if sum(n for _, n in found) >= line_times.FEWEST else None


def _waiting(run: Run, process: Process, first: int) -> float | None:
    """Return the seconds in which the thread of ``process`` that runs the steps waited for values of devices.
    None if unknown, for example because several threads compiled. Waits that ended before ``first`` (ns since
    the epoch) do not count."""
    threads = {
        event.thread
        for c in run.compilations.values()
        if c.process is process
        for event in (c.traced, c.lowered, c.compiled)
        if event is not None
    }
    total = 0.0
    for event in process.transfers.values():
        if event.direction != transfers.TO_HOST or not event.seconds or event.last_ns <= first:
            continue
        if event.first_ns < first or len(threads) > 1 or not event.step_seconds:
            return None
        total += event.step_seconds
    return total
