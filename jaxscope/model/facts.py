"""Compare the figures of two runs of a program, and decide for each whether it is better, worse or equal.

The figures are counts, bytes, and lower bounds on the time of a call on target machines. Measured seconds are
not compared. If a function has several compiled programs, the largest value of each figure is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis.hlo import axes
from jaxscope.model import metrics, payers, target_programs, transfers
from jaxscope.model.causes import recompiles
from jaxscope.model.diff import FunctionDiff, RunDiff, programs_of
from jaxscope.model.metrics import BYTES, COUNT, Difference, Figures, Metric, ProgramMetrics
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.model.transfers import TO_DEVICE, TO_HOST

BETTER, WORSE, EQUAL, MIXED = "better", "worse", "equal", "mixed"
SECONDS = "seconds"  # the unit of a bound


def _memory(m: metrics.SavedMetrics) -> Figures | None:
    """Return the peak and the temporary bytes of a program on one device: ``{"peak": 4096, "temp": 1024}``,
    without unknown ones. None if both are unknown. ``m`` has all figures of the program."""
    memory = m.memory or {}
    return {name: memory[name] for name in ("peak", "temp") if name in memory} or None


def _wire(m: metrics.SavedMetrics) -> Figures | None:
    """Return the most bytes that one device sends in one call of a program, by mesh axes: ``{"data": 4096,
    ...}``. A value is None if it is unknown. Return None if all are unknown. ``m`` has all figures of the
    program."""
    traffic = m.traffic if isinstance(m, ProgramMetrics) else None
    return None if traffic is None else {axes.text(over): t.wire_bytes for over, t in traffic.items()}


def _bound(m: metrics.SavedMetrics) -> Figures | None:
    """Return the lower bound on the seconds of one call of a program, as ``{"least": seconds}``. None if
    unknown, or if the program is not for a target (a machine given by ``--target``). ``m`` has all figures of
    the program."""
    bounds = m.bounds if isinstance(m, ProgramMetrics) else None
    return None if bounds is None else {"least": bounds.least}


MEMORY = Metric("memory", BYTES, metrics.LESS, _memory, metrics.MEMORY.tolerance, "{}_bytes", None)
WIRE = Metric("wire", BYTES, metrics.LESS, _wire, spelled="wire_bytes over {}")
BOUND = Metric("bound", SECONDS, metrics.LESS, _bound, metrics.WORK.tolerance, "{}_seconds", None)
COUNTS = Metric("counts", COUNT, metrics.LESS, lambda m: None, missing=None)
TRANSFERRED = Metric("transferred", BYTES, metrics.LESS, lambda m: None, missing=None)
OF_PROGRAMS = (MEMORY, metrics.WORK, WIRE, metrics.CONSTANTS, metrics.UPCASTS, metrics.CALLBACKS, BOUND)


class Fact(msgspec.Struct, frozen=True):
    """One figure in both runs, and the verdict.

    Attributes:
      part: the name of the metric, a group of figures: ``memory``.
      figure: the name of the figure within the metric, both values and the unit.
      verdict: whether the second run is BETTER, WORSE or EQUAL.
      function: the function to which the figure belongs; None: it belongs to the run.
      target: the accelerator for which the program of the figure was compiled; None: the devices that ran the
        program, or a figure of no program.
    """

    part: str
    figure: Difference
    verdict: str
    function: Function | None = None
    target: str | None = None


def facts(diff: RunDiff) -> list[Fact]:
    """Return the figures of the two runs compared in ``diff``, each with a verdict: first those of the whole
    runs, then those of the user's functions. Functions that only one of the runs has are left out."""
    both = [f for f in diff.functions if f.before is not None and f.after is not None and f.function.user]
    before, after = (_transfers(run, "bytes", "bytes") for run in (diff.before, diff.after))
    return [
        *_judged(COUNTS, _counts(diff.before), _counts(diff.after)),
        *_judged(TRANSFERRED, before, after),
        *(fact for f in both for fact in _of_function(diff, f)),
    ]


def verdict(figures: Iterable[Fact]) -> str:
    """Return one verdict for all of ``figures``: BETTER or WORSE if all figures that differ have this
    verdict, MIXED if some are better and some are worse, EQUAL if no figure differs."""
    seen = {f.verdict for f in figures} - {EQUAL}
    return MIXED if len(seen) > 1 else next(iter(seen), EQUAL)


def _judged(
    metric: Metric,
    before: Figures | None,
    after: Figures | None,
    function: Function | None = None,
    target: str | None = None,
) -> Iterator[Fact]:
    """Yield a Fact with a verdict (better, worse or equal) for each figure of ``metric`` that is known in
    both runs.

    Args:
      metric: the group of figures. It says which values are better, and which relative change is ignored.
      before, after: the values in the first and in the second run by name of the figure; None: unknown.
      function, target: what the figures belong to (see ``Fact``).
    """
    if before is None or after is None:
        return
    for d in metric.differences(before, after):
        same = abs(d.after - d.before) <= metric.tolerance * abs(d.before)
        yield Fact(metric.name, d, EQUAL if same else WORSE if d.worse else BETTER, function, target)


def _counts(run: Run) -> dict[str, float]:
    """Return the numbers of recompiles, traces, transfers etc. of a run: ``{"recompiles": 3,
    "transfers_to_host": 8, ...}``. Recompiles and fast-path misses are those of the user's functions;
    compilations, lowerings and traces are those of all functions."""
    functions = run.functions.values()
    return {
        "recompiles": sum(len(recompiles(f, run)) for f in functions if f.user),
        "recompiles_outside_jit": len(payers.recompiled_outside(run)),
        "compilations": sum(f.compiled for f in functions),
        "lowerings": sum(f.lowerings for f in functions),
        "traces": sum(f.traces for f in functions),
        "fast_path_misses": sum(f.fast_path_misses for f in functions if f.user),
        **_transfers(run, "transfers", "count"),
    }


def _transfers(run: Run, name: str, attribute: str) -> dict[str, float]:
    """Return the sums of one attribute of all transfers of the run, ``count`` or ``bytes``, for each
    direction. The keys begin with ``name``: with ``bytes``, ``{"bytes_to_host": 4096, "bytes_to_devices":
    1024}``. Unknown numbers count as 0. Empty if transfers were not recorded."""
    if not transfers.counted(run):
        return {}
    found = transfers.transfers(run)
    return {
        f"{name}_{way}": sum(getattr(t, attribute) or 0 for t in found if t.direction == direction)
        for way, direction in (("to_host", TO_HOST), ("to_devices", TO_DEVICE))
    }


def _of_function(diff: RunDiff, f: FunctionDiff) -> Iterator[Fact]:
    """Yield the compared figures of the function ``f``, which both runs have, and of its compiled programs.
    ``diff`` is the comparison of both runs."""
    assert f.before is not None and f.after is not None
    before, after = (
        {"compilations": x.compiled, "recompiles": len(recompiles(x, run))}
        for x, run in ((f.before, diff.before), (f.after, diff.after))
    )
    yield from _judged(COUNTS, before, after, f.function)
    old, new = _by_target(diff.before, f.before), _by_target(diff.after, f.after)
    for target in old:
        if target in new:
            were = [metrics.of(diff.before, p) for p in old[target]]
            are = [metrics.of(diff.after, p) for p in new[target]]
            for metric in OF_PROGRAMS:
                yield from _judged(metric, _largest(metric, were), _largest(metric, are), f.function, target)


def _by_target(run: Run, f: Function) -> dict[str | None, list[Program]]:
    """Return the programs of ``f`` by name of their target (a machine given by ``--target``). The key None
    has the programs for the devices on which the run took place."""
    found: dict[str | None, list[Program]] = {None: programs_of(run, f)}
    for g, programs in target_programs.of_run(run):
        for p in programs if g is f else ():
            found.setdefault(p.target, []).append(p)
    return {target: programs for target, programs in found.items() if programs}


def _largest(metric: Metric, programs: Sequence[ProgramMetrics]) -> Figures | None:
    """Return {name of the figure: its largest value in ``programs``} for the figures of ``metric``. A value
    is None if it is unknown for one of the programs. Return None if all figures of one of the programs are
    unknown."""
    found: dict[str, float | None] = {}
    for program in programs:
        figures = metric.extract(program)
        if figures is None:
            return None
        for name, value in figures.items():
            known = found.get(name, value)
            found[name] = None if value is None or known is None else max(value, known)
    return found
