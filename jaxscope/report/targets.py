"""Print and serialize programs that were compiled for targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from jaxscope.analysis import machines, memory_fit
from jaxscope.analysis.bounds import Bounds
from jaxscope.analysis.memory_fit import Fit
from jaxscope.analysis.programs import Texts
from jaxscope.log.jobs import CRASHED, EXHAUSTED, FAILED, LATE, MISSING, OK
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.model.target_programs import bounds_of, fit, of_run
from jaxscope.present.escape import escape
from jaxscope.present.text import Places, count, function_name, seconds, size
from jaxscope.report import compiled_program, contract
from jaxscope.report.layout import Line, line
from jaxscope.report.programs import texts_json

LARGEST = 5


def bounds_line(found: Bounds) -> Line:
    """``bounds: no call takes less than 4.1 ms (compute); memory 0.4 ms, data 3.0 ms``."""
    least = f"no call takes less than {short(found.least)} ({escape(found.binds or '?')})"
    others = bounds_besides(found)
    return line(
        (f"bounds from peak rates: {least}{f'; {others}' if others else ''}", "dim"), indent=6, hang=2
    )


def bounds_besides(found: Bounds) -> str:
    """``memory 0.4 ms, data 3.0 ms``: the bounds that do not bind, and where rates are second-hand; may be empty."""
    rest = {"compute": found.compute, "memory": found.memory, **found.axes}
    why = {"compute": f" ({escape(found.uncounted, 120)})"} if found.uncounted else {}
    others = ", ".join(
        f"{escape(n)} {short(v)}{why.get(n, '')}"
        for n, v in rest.items()
        if n != found.binds and (v is None or v > 0)
    )
    if found.quoted:
        others += (
            f"{'; ' if others else ''}with rates from secondary sources: {escape(', '.join(found.quoted))}"
        )
    return others


def short(value: float | None) -> str:
    """``4.1 ms``, ``38 us``, ``9 ns``."""
    if value is None:
        return "unknown"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns" if value >= 1e-9 else "<1 ns" if value > 0 else "0 s"


def least(found: Bounds) -> str:
    """``4.1 ms, compute``; empty if the binding resource is unknown."""
    return "" if found.binds is None else f"{short(found.least)}, {escape(found.binds, 40)}"


def in_summary(run: Run, most: int, label: str = "") -> Iterator[Line]:
    """A line for each program of the ``most`` expensive functions, for the summary of a run. ``label``: its settings."""
    for f, programs in of_run(run)[:most]:
        for p in programs:
            status, style = state(p)
            short = compiled_program.in_short(run.texts_of(p), None) if p.state == OK else ""
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
    """Report that the script ran on another number of devices than the target has."""
    have = len(run.devices)
    for t in run.targets:
        if have and have != t.devices:
            whose = "the environment's or the script's own number" if run.forced_devices != have else "given"
            yield line(
                (f"the script ran on {count(have, 'device')} ({whose}); {escape(t.name, 40)} has {t.devices:,}", "warning"),
                indent=2, hang=2,
            )  # fmt: skip
    if run.devices and run.targets:
        yield line(
            ("jax.process_count() and the like had this machine's values, not the target's", "dim"), indent=2
        )


def program_lines(
    run: Run, p: Program, places: Places, *, label: str = "", everything: bool = False
) -> Iterator[Line]:
    """Print one program: its state, and what it consists of if it was compiled. ``label``: the settings of its run."""
    status, style = state(p)
    texts = run.texts_of(p)
    short = compiled_program.in_short(texts, None) if p.state == OK else ""
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
        cycles = f"{texts.hlo.estimated_cycles:,} cycles by the compiler's own estimate, without collectives"
        yield line((cycles, "dim"), indent=6, hang=2)
    limits = bounds_of(run, p)
    if limits is not None and limits.binds is not None:
        yield bounds_line(limits)


def whole(run: Run, p: Program, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Print one program with everything that its texts contain."""
    f = p.function
    if f is not None:
        site = places.function(f)
        yield line((function_name(f), "bold"), (f"  {site}" if site else "", "dim"))
    yield from program_lines(run, p, places, everything=everything)
    memory = p.made.memory if p.made is not None else None
    yield from compiled_program.section(
        run.texts_of(p),
        memory,
        places,
        everything=everything,
        stated=p.made.peak_bytes if p.made is not None else None,
    )


def state(p: Program) -> tuple[str, str]:
    """Describe the state of ``p``, with the style of the text."""
    made_ = p.made
    error = escape(" ".join((made_.error or "").split()), 400) if made_ is not None else ""
    if p.state == "skipped":
        return f"not lowered: {escape(p.asked.skipped or '', 400) if p.asked else ''}", "warning"
    return {
        OK: (f"compiled in {seconds(made_.seconds) if made_ else '?'}", "dim"),
        EXHAUSTED: ("", "error")
        if memory_fit.of_message(None, error).used
        else (f"does not fit: {error}", "error"),
        FAILED: (f"not compiled{_unlisted(p)}: {error}", "warning"),
        CRASHED: (f"the compiler crashed{_unlisted(p)}: {error}", "warning"),
        LATE: (error, "warning"),
        MISSING: (error, "warning"),
        "compiling": ("compiling", "dim"),
        "abandoned": ("not compiled: the compiler's process has ended", "warning"),
    }.get(p.state, (waiting(p.behind), "dim"))


def waiting(behind: Sequence[int]) -> str:
    """Describe what a program waits for: the compiler of its run, or those of other runs, which use the machine."""
    known = ", ".join(str(n) for n in behind if n > 0)
    others = f" (process{'es' if ',' in known else ''} {known})" if known else ""
    return (
        f"waiting for {count(len(behind), 'compiler')} of other runs{others}"
        if behind
        else "waiting for the compiler"
    )


def _unlisted(p: Program) -> str:
    """Describe a possible reason: some compilers accept slices that do not exist, and crash or fail on others."""
    near = machines.unlisted(p.target or "")
    return (
        f" (no page lists a slice {escape(p.target or '', 40)}; near it: {', '.join(near)})" if near else ""
    )


def fit_lines(found: Fit, texts: Texts, *, everything: bool = False) -> Iterator[Line]:
    """Print ``does not fit: 20.3 GiB in 15.8 GiB`` with the parts; or the used memory if it fits."""
    if found.used is None:
        return
    room = f" of {size(found.capacity)}" if found.capacity is not None else ""
    if found.fits is not False:
        yield line(f"{size(found.used)}{room} on a device", indent=6)
        return
    parts = ", ".join(f"{escape(n)} {size(v)}" for n, v in found.parts.items() if v)
    yield line(
        ("does not fit: ", "error"),
        f"{size(found.used)} in {size(found.capacity) if found.capacity is not None else '?'}",
        f" ({parts})" if parts else "",
        indent=6,
        hang=4,
    )
    for a in found.largest[: None if everything else LARGEST]:
        where = f"  {escape(a.file.rpartition('/')[2], 60)}:{a.line}" if a.file and a.line else ""
        yield line(f"{size(a.bytes)}  {escape(a.shape or '', 80)}  {escape(a.operation or '', 120)}", (where, "dim"), indent=8, hang=4)  # fmt: skip
    for c in (memory_fit.contributors(texts.stablehlo) or [])[: None if everything else LARGEST]:
        if c.bytes:
            yield line(f"{size(c.bytes)}  {c.of} {escape(c.path or '?', 100)}", indent=8, hang=4)


def _by_path(texts: Texts) -> list[contract.Contributor] | None:
    found = memory_fit.contributors(texts.stablehlo)
    return None if found is None else [contract.Contributor.copy_of(c) for c in found]


def bounds_json(found: Bounds | None) -> contract.Bounds | None:
    if found is None:
        return None
    return contract.Bounds(
        found.compute, found.memory, dict(found.axes), found.least, found.binds, list(found.quoted)
    )


def program_json(run: Run, p: Program) -> contract.Program:
    """An entry of ``programs`` for a target; ``of`` is the program that ran instead."""
    texts = run.texts_of(p)
    result, found = p.made, fit(run, p)
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
        num_partitions=p.asked.partitions if p.asked is not None else entry.num_partitions,
        bounds=bounds_json(bounds_of(run, p)),
        flops=cost.get("flops"),
        bytes_accessed=cost.get("bytes accessed"),
        state=p.state,
        error=result.error if result is not None else None,
        skipped=p.asked.skipped if p.asked is not None else None,
        compiler=result.compiler if result is not None else None,
        compile_seconds=result.seconds if result is not None else None,
        waited_seconds=p.asked.seconds if p.asked is not None else None,
        compiler_process_bytes=result.process_bytes if result is not None else None,
    )


def _memory(
    known: contract.Memory | None, texts: Texts, found: Fit | None, peak: int | None
) -> contract.Memory | None:
    if known is None and found is None and texts.stablehlo is None:
        return None
    memory = known or contract.Memory()
    return msgspec.structs.replace(
        memory,
        by_path=_by_path(texts),
        peak_bytes=memory.peak_bytes if peak is None else peak,
        **({} if found is None else _fit(found)),
    )


def _fit(found: Fit) -> dict[str, Any]:
    buffers = [
        contract.Buffer.copy_of(
            a, source=None if a.file is None else {"file": a.file, "line": a.line, "function": None}
        )
        for a in found.largest
    ]
    return {
        "capacity_bytes": found.capacity,
        "fits": found.fits,
        "used_bytes": found.used,
        "parts": found.parts,
        "largest": buffers,
    }
