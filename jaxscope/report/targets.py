"""Report programs that were compiled for targets (machines given with ``--target``, which need not be
present), as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from jaxscope.analysis.bounds import Bound, Bounds
from jaxscope.analysis.hlo import axes
from jaxscope.analysis.memory_fit import Fit
from jaxscope.analysis.programs import Texts
from jaxscope.log.jobs import OK
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.model.target_programs import bounds_of, fit, of_run
from jaxscope.present.escape import escape
from jaxscope.present.programs import in_short
from jaxscope.present.targets import bounds, cycles, largest, memory_fit, state
from jaxscope.present.text import Places, count, function_name
from jaxscope.report import compiled_program, contract
from jaxscope.report.function_summary import heading
from jaxscope.report.layout import Line, line
from jaxscope.report.programs import by_path, texts_json

LARGEST = 5  # buffers that are listed


def in_summary(run: Run, most: int, label: str = "") -> Iterator[Line]:
    """Yield lines for the summary at the end of ``jaxscope run`` about the programs for targets (machines to
    compile for, ``v5e:4x4``): one line for each program, and lines about whether it fits into memory.

    Args:
      most: the number of functions to include: those that took longest to compile.
      label: the values that ``run --vary`` gave the program, as text: ``MESH=4x4``; empty: none.
    """
    for f, programs in of_run(run)[:most]:
        for p in programs:
            status, style = state(p)
            short = in_short(run.texts_of(p), None) if p.state == OK else ""
            yield line(
                (f"for {escape(p.target or '?', 40)}{f', {escape(label, 80)}' if label else ''}: ", "bold"),
                f"{function_name(f)}  {short}".rstrip(),
                (f"  {status}" if status else "", style),
                indent=2,
                hang=4,
            )
            found = fit(run, p)
            if found is not None:
                yield from fit_lines(found, run.texts_of(p))


def devices(run: Run) -> Iterator[Line]:
    """Yield warnings that the program saw the devices of this machine, not those of its targets (machines to
    compile for, ``v5e:4x4``): another number of devices, and other values of ``jax.process_count()`` and the
    like. Yield nothing if there are no targets, or if the devices of this machine are unknown."""
    have = len(run.devices)
    for t in run.targets:
        if have and have != t.devices:
            whose = "the environment's or the script's own number" if run.forced_devices != have else "given"
            yield line(
                (
                    f"the script ran on {count(have, 'device')} ({whose});"
                    f" {escape(t.name, 40)} has {t.devices:,}",
                    "warning",
                ),
                indent=2,
                hang=2,
            )
    if run.devices and run.targets:
        yield line(
            ("jax.process_count() and the like had this machine's values, not the target's", "dim"), indent=2
        )


def program_lines(run: Run, p: Program, *, label: str = "", everything: bool = False) -> Iterator[Line]:
    """Yield lines about one program for a target (a machine to compile for, ``v5e:4x4``): whether it was
    compiled and fits into memory, its estimated cycles and lower bounds on its time.

    Args:
      label: the values that ``run --vary`` gave the program in this run, as text: ``MESH=4x4``; empty: none.
      everything: list all known buffers if the program does not fit (``--all``).
    """
    status, style = state(p)
    texts = run.texts_of(p)
    short = in_short(texts, None) if p.state == OK else ""
    name = f"{escape(p.target or '?', 40)}{f', {escape(label, 80)}' if label else ''}"
    yield line(
        (name, "bold"),
        f"  {short}" if short else "",
        (f"  {status}" if status else "", style),
        indent=4,
        hang=4,
    )
    found = fit(run, p)
    if found is not None:
        yield from fit_lines(found, texts, everything=everything)
    if texts.hlo is not None and texts.hlo.estimated_cycles:
        yield line((cycles(texts.hlo.estimated_cycles), "dim"), indent=6, hang=2)
    limits = bounds_of(run, p)
    if limits is not None and limits.binds is not None:
        yield line(("bounds from peak rates: ", "dim"), *bounds(limits), indent=6, hang=2)


def whole(run: Run, p: Program, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield the name of the function of a program for a target (a machine to compile for, ``v5e:4x4``), then
    the lines of ``with_contents``."""
    if p.function is not None:
        yield line(*heading(p.function, places))
    yield from with_contents(run, p, places, everything=everything)


def with_contents(run: Run, p: Program, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield lines about one program for a target (a machine to compile for, ``v5e:4x4``): whether it was
    compiled and fits into memory, and its instructions, collectives, donated arguments and so on. ``places``
    shortens file names. ``everything`` (``--all``) lists all rows."""
    yield from program_lines(run, p, everything=everything)
    memory = p.target_compiled.memory if p.target_compiled is not None else None
    yield from compiled_program.section(
        run.texts_of(p),
        memory,
        places,
        everything=everything,
        stated=p.target_compiled.peak_bytes if p.target_compiled is not None else None,
    )


def fit_lines(program_fit: Fit, texts: Texts, *, everything: bool = False) -> Iterator[Line]:
    """Yield lines about whether a program fits into the memory of a target (a machine to compile for,
    ``v5e:4x4``). If it does not fit, they list its largest buffers, arguments and results; with
    ``everything`` (``--all``), all known ones. ``texts`` are the parsed StableHLO and HLO of the program."""
    fit_text = memory_fit(program_fit)
    if fit_text:
        yield line(*fit_text, indent=6, hang=4)
    for spans in largest(program_fit, texts, None if everything else LARGEST):
        yield line(*spans, indent=8, hang=4)


def bounds_json(time_bounds: Bounds | None) -> contract.Bounds | None:
    """Return the entry ``bounds`` of a program in the JSON report: lower bounds on the time of one call. None
    if ``time_bounds`` is None."""
    if time_bounds is None:
        return None
    return contract.Bounds(
        time_bounds.compute,
        time_bounds.memory,
        {axes.text(over): spent for over, spent in time_bounds.axes.items()},
        time_bounds.least,
        None if time_bounds.binds is None else _key(time_bounds.binds),
        list(map(_key, time_bounds.quoted)),
    )


def _key(bound: Bound) -> str:
    """Return the name of a bound in JSON: ``compute``, ``memory``, or for mesh axes ``data,model``."""
    return bound if isinstance(bound, str) else axes.text(bound)


def program_json(run: Run, p: Program) -> contract.Program:
    """Return the entry of the list ``programs`` in the JSON report for a program that was lowered for a
    target (a machine to compile for, ``v5e:4x4``)."""
    texts = run.texts_of(p)
    result, found = p.target_compiled, fit(run, p)
    entry = texts_json(texts, result.memory if result is not None else None)
    cost = result.cost if result is not None else {}
    return contract.Program.copy_of(
        entry,
        id=p.id,
        of=p.of.id if p.of is not None else None,
        function=None if p.function is None else p.function.id,
        module=p.module,
        stablehlo=p.texts.get("stablehlo"),
        hlo=p.texts.get("hlo"),
        target=p.target,
        compilations=[c.id for c in p.compilations],
        memory=_memory(entry.memory, texts, found, result.peak_bytes if result is not None else None),
        num_partitions=p.target_lowered.partitions if p.target_lowered is not None else entry.num_partitions,
        bounds=bounds_json(bounds_of(run, p)),
        flops=cost.get("flops"),
        bytes_accessed=cost.get("bytes accessed"),
        state=p.state,
        error=result.error if result is not None else None,
        skipped=p.target_lowered.skipped if p.target_lowered is not None else None,
        compiler=result.compiler if result is not None else None,
        compile_seconds=result.seconds if result is not None else None,
        waited_seconds=p.target_lowered.seconds if p.target_lowered is not None else None,
        compiler_process_bytes=result.process_bytes if result is not None else None,
    )


def _memory(
    known: contract.Memory | None, texts: Texts, program_fit: Fit | None, peak: int | None
) -> contract.Memory | None:
    """Return the entry ``memory`` of a program for a target (a machine to compile for): the sizes ``known``
    from the compiler or the HLO, with the peak and the figures of ``program_fit``. None if nothing is
    known."""
    if known is None and program_fit is None and texts.stablehlo is None:
        return None
    memory = known or contract.Memory()
    return msgspec.structs.replace(
        memory,
        by_path=by_path(texts.stablehlo),
        peak_bytes=memory.peak_bytes if peak is None else peak,
        **({} if program_fit is None else _fit(program_fit)),
    )


def _fit(program_fit: Fit) -> dict[str, Any]:
    buffers = [
        contract.Buffer.copy_of(
            a, source=None if a.file is None else {"file": a.file, "line": a.line, "function": None}
        )
        for a in program_fit.largest
    ]
    return {
        "capacity_bytes": program_fit.capacity,
        "fits": program_fit.fits,
        "used_bytes": program_fit.used,
        "parts": program_fit.parts,
        "largest": buffers,
    }
