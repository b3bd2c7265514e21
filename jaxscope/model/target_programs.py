"""List the programs that a run compiled for targets (``--target v5e:4x4``), and find whether they fit.

A program fits if the memory that it needs on one device is not more than the device has.
"""

from __future__ import annotations

from jaxscope.analysis import bounds, memory_fit
from jaxscope.analysis.bounds import Bounds
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.memory_fit import Fit
from jaxscope.log.jobs import EXHAUSTED, OK
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.schema.targets import Target


def of_run(run: Run) -> list[tuple[Function, list[Program]]]:
    """Return (function, its latest program for each target) for each function with programs for targets
    (``--target``), even if they are not compiled. The functions with the most seconds of tracing, lowering
    and compiling come first; programs are sorted by target."""
    latest: dict[tuple[str, str], Program] = {}
    for p in run.retargeted.values():
        f = p.function
        if f is not None:
            key = f.id, p.target or ""
            before = latest.get(key)
            if before is None or p.compilations[-1].t_ns >= before.compilations[-1].t_ns:
                latest[key] = p
    by = grouped((id, p) for (id, _), p in latest.items())
    found = [(run.functions[id], sorted(ps, key=lambda p: p.target or "")) for id, ps in by.items()]
    return sorted(found, key=lambda item: (-item[0].seconds, item[0].id))


def target_of(run: Run, p: Program) -> Target | None:
    """Return the target (``--target``) that ``p`` was lowered for. None if the log does not describe this
    target."""
    return next((t for t in run.targets if t.name == p.target), None)


def fit(run: Run, p: Program) -> Fit | None:
    """Return whether ``p`` fits into the memory of one device of its target (a machine given by
    ``--target``), with the bytes that it needs and that the device has, as far as they are known. None if
    ``p`` was not compiled for the target, or if its compilation failed for another reason than lack of
    memory."""
    if p.target_compiled is None:
        return None
    if p.target_compiled.outcome == EXHAUSTED:
        found = memory_fit.of_message(target_of(run, p), p.target_compiled.error or "")
        return memory_fit.with_values(found, run.texts_of(p).stablehlo)
    if p.target_compiled.outcome == OK:
        return memory_fit.of_program(
            target_of(run, p), memory_fit.peak_of(p.target_compiled.memory, p.target_compiled.peak_bytes)
        )
    return None


def bounds_of(run: Run, p: Program) -> Bounds | None:
    """Return lower bounds on the time of one call of ``p`` on its target (``--target``). None if the target
    is unknown, or if there is no compiled text of ``p``."""
    target = target_of(run, p)
    program = run.texts_of(p).hlo
    if target is None or program is None or program.module is None:
        return None
    return bounds.of_program(
        target,
        program.flops_by_type,
        program.moved_bytes,
        program.collectives,
        program.mesh,
        p.target_lowered.partitions if p.target_lowered is not None else program.num_partitions,
        p.target_lowered is not None and p.target_lowered.in_order is True,
        program.flops_unknown,
    )
