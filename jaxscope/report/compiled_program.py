"""Report the contents of one compiled program: fusions, collectives, loops, memory, donation, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from jaxscope.analysis import memory_fit
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import Texts, peak_bytes
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.present.escape import escape
from jaxscope.present.programs import (
    DONATION,
    MEMORY_PARTS,
    axes,
    bytes_within,
    line_of,
    over_axes,
    overlap,
    reason,
    sent_by_axes,
    times,
)
from jaxscope.present.text import Places, count, listed, size
from jaxscope.report.layout import Line, aligned, filled_cells, line
from jaxscope.schema.keys import Memory

SHOWN = 12  # rows of a table
PATHS = 3  # arguments in a line
LOOPS = 6  # different numbers of iterations in a line


def section(
    texts: Texts,
    memory: Memory | None,
    places: Places,
    *,
    everything: bool = False,
    stated: int | None = None,
) -> Iterator[Line]:
    """Yield the report's lines about a compiled program: its instructions, memory, collectives, donated
    arguments, constants, and what may be slow.

    Args:
      texts: the parsed StableHLO and HLO of the program.
      memory: the sizes of arguments, results and temporaries that the compiler states; None: take the sizes
        from the HLO.
      places: shortens file names.
      everything: list all rows of each table (``--all``).
      stated: the peak memory on one device that the compiler states, in bytes; None: unknown.
    """
    hlo, lowered = texts.hlo, texts.stablehlo
    if hlo is not None and hlo.module is not None:
        yield line(_instructions(hlo), indent=2, hang=2)
    yield from _memory(memory, hlo, stated)
    if hlo is not None:
        yield from _collectives(hlo, places, everything=everything)
    if lowered is not None:
        yield from _donation(lowered)
        yield from _constants(lowered, places, everything=everything)
        yield from _worth_a_look(lowered, places, everything=everything)
    yield from _problems(hlo, lowered)


def _instructions(hlo: Compiled) -> str:
    """Return the numbers of instructions, fusions, loops and custom calls as text: ``120 instructions · 9
    fusions (8 loop, 1 input) · 2 loops of 10 iterations each``."""
    kinds = ", ".join(
        f"{n} {escape(kind)}" for kind, n in sorted(hlo.fusions.by_kind.items(), key=lambda i: -i[1])
    )
    parts = [
        f"{hlo.instructions:,} instructions",
        count(hlo.fusions.total, "fusion") + (f" ({kinds})" if kinds else ""),
    ]
    if hlo.unfused_elementwise:
        parts.append(f"{hlo.unfused_elementwise:,} unfused elementwise")
    if hlo.loops:
        turns = Counter("?" if loop.trip_count is None else f"{loop.trip_count:,}" for loop in hlo.loops)
        alike = len(turns) == 1
        turns_of = ", ".join(
            trips if n == 1 or alike else f"{n}x {trips}" for trips, n in turns.most_common(LOOPS)
        )
        more = ", ..." if len(turns) > LOOPS else ""
        each = " each" if alike and len(hlo.loops) > 1 else ""
        parts.append(f"{count(len(hlo.loops), 'loop')} of {turns_of}{more} iterations{each}")
    if hlo.custom_calls:
        calls = ", ".join(
            f"{escape(t, 40)} {n}x" for t, n in sorted(hlo.custom_calls.items(), key=lambda i: -i[1])[:3]
        )
        parts.append(f"custom calls: {calls}")
    return " · ".join(parts)


def _memory(memory: Memory | None, hlo: Compiled | None, stated: int | None) -> Iterator[Line]:
    """Yield a line about the memory that the program needs on one device: the sum and its parts. Yield
    nothing if neither ``memory`` nor ``hlo`` has sizes. The parameters are those of ``section``."""
    if memory is None and (hlo is None or hlo.memory.argument_bytes is None):
        return
    known = memory or Memory()
    sizes = hlo.memory if memory is None and hlo is not None else known
    parts = [
        (name, n)
        for name, n in (
            (MEMORY_PARTS["argument_bytes"], sizes.argument_bytes),
            (MEMORY_PARTS["output_bytes"], sizes.output_bytes),
            (MEMORY_PARTS["temp_bytes"], known.temp_bytes),
        )
        if n is not None
    ]
    text = " + ".join(f"{name} {size(n)}" for name, n in parts)
    if sizes.alias_bytes:
        text += f" - {size(sizes.alias_bytes)} {MEMORY_PARTS['alias_bytes']}"
    peak = peak_bytes(known)
    if peak is None and known.temp_bytes is None and text:
        text += " on a device, without temporaries"
    rest = memory_fit.undivided(known, stated)
    if rest:
        text += f" {'+' if rest > 0 else '-'} {size(abs(rest))} " + (
            "of other buffers, such as constants" if rest > 0 else "not live at the same time"
        )
        peak = stated
    yield line(
        ("memory", "bold"),
        f"  {text}",
        (f" = {size(peak)} on a device" if peak is not None else "", "bold"),
        indent=2,
        hang=4,
    )


def _collectives(hlo: Compiled, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield a line with the number of collectives and the bytes that each device sends for them, then a table
    of the collectives, the most bytes first. Equal rows are printed once with their number."""
    if not hlo.collectives:
        return
    wire = ", ".join(f"{escape(over_axes(over))} {bytes_within(n)}" for over, n in sent_by_axes(hlo))
    yield line(
        ("collectives", "bold"),
        f"  {len(hlo.collectives):,}" + (f"; sent per device per call: {wire}" if wire else ""),
        indent=2,
        hang=4,
    )
    ranked = sorted(hlo.collectives, key=lambda c: -(c.wire_bytes or c.bytes or 0) * (c.executions or 1))
    # Equal rows are counted, in the order in which they first occur
    rows = Counter(tuple(_collective(c, places)) for c in ranked)
    shown = list(rows.items()) if everything else list(rows.items())[:SHOWN]
    yield from table([[f"{n}x {row[0]}" if n > 1 else row[0], *row[1:]] for row, n in shown])
    left = len(ranked) - sum(n for _, n in shown)
    if left:
        yield line((f"and {left:,} more: --all shows them", "dim"), indent=4)


def _collective(c: Collective, places: Places) -> list[str]:
    """Return the row for the collective ``c``: kind, mesh axes, bytes, why the program has it, whether it
    overlaps with computation, source line. Unknown cells are empty or ``?``."""
    return [
        f"{c.kind} ({c.transfer})" if c.transfer else escape(c.kind),
        escape(axes(c)),
        f"{size(c.bytes)} {times(c)}".strip(),
        escape(reason(c, places)),
        overlap(c),
        line_of(c, places),
    ]


def _donation(lowered: Reading) -> Iterator[Line]:
    """Yield a line for each status of donation (donated, donated but unused, could be donated) that an
    argument has, with the arguments and their bytes."""
    for status, donation in DONATION.items():
        arguments = [d for d in lowered.donation if d.status == status]
        if arguments:
            total = sum(d.bytes or 0 for d in arguments)
            yield line((donation.words, "bold"), f"  {_paths(arguments)}, {size(total)}", indent=2, hang=4)


def _paths(donations: Sequence[Donation]) -> str:
    """Return the paths of the PATHS (3) largest of ``donations`` as text, with the reasons why their memory
    is not reused. A reason that all share is written once, at the end."""
    ranked = sorted(donations, key=lambda d: -(d.bytes or 0))
    reasons = {d.reason for d in donations}
    one = next(iter(reasons)) if len(reasons) == 1 and len(donations) > 1 else None
    paths = ", ".join(
        escape(d.path or "?", 80) + (f" ({escape(d.reason, 120)})" if d.reason and one is None else "")
        for d in ranked[:PATHS]
    )
    paths += f" and {len(donations) - PATHS} more" if len(donations) > PATHS else ""
    return paths + (f" ({escape(one, 120)})" if one else "")


def _constants(lowered: Reading, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield a heading and a table of the arrays that the traced function captured, the largest first. Arrays
    whose elements are all equal are left out."""
    large = sorted((c for c in lowered.constants if c.bytes and not c.splat), key=lambda c: -(c.bytes or 0))
    if not large:
        return
    yield line(
        ("captured constants", "bold"),
        f"  {count(len(large), 'array')}, {size(sum(c.bytes or 0 for c in large))}",
        indent=2,
    )
    shown = large if everything else large[:PATHS]
    yield from table(
        [
            [
                escape(c.name or "/".join(c.names) or "?", 60),
                size(c.bytes or 0),
                places.inside(c.source) or "",
            ]
            for c in shown
        ]
    )


def _worth_a_look(lowered: Reading, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield a heading and a table of operations that may be slow: unrolled loops, conversions to wider types,
    and callbacks into Python. Yield nothing if the program has none. ``lowered`` is its parsed StableHLO.
    ``everything`` (``--all``) lists all rows."""
    loops = [
        [f"the same {r.length} operations {r.times} times", "an unrolled loop", places.inside(r.source) or ""]
        for r in lowered.repeated
        if not r.in_loop
    ]
    conversions = [
        [
            f"{escape(u.before)} to {escape(u.after)}",
            size(u.bytes),
            places.inside(u.source) or "",
        ]
        for u in lowered.upcasts
        if not u.backward
    ]
    callbacks = [
        [
            f"calls back into Python ({escape(c.kind or 'unknown')})",
            "in every iteration" if c.in_loop else "",
            places.inside(c.source) or "",
        ]
        for c in lowered.callbacks
    ]
    kinds = {"unrolled loops": loops, "conversions to a wider type": conversions, "callbacks": callbacks}
    rows = [row for found in kinds.values() for row in found]
    if rows:
        counts = Counter(map(tuple, rows))
        rows = [[*row, f"{n:,} of these" if n > 1 else ""] for row, n in counts.items()]
        yield line((listed([kind for kind, found in kinds.items() if found]), "bold"), indent=2)
        yield from table(rows if everything else rows[:SHOWN])


def _problems(hlo: Compiled | None, lowered: Reading | None) -> Iterator[Line]:
    found = [("HLO", p.line, p.text) for p in hlo.problems] if hlo is not None else []
    found += [("StableHLO", p.line, p.text) for p in lowered.problems] if lowered is not None else []
    for stage, number, text in found[:PATHS]:
        yield line((f"not parsed, {stage} line {number}: ", "warning"), escape(text, 200), indent=2, hang=4)
    if len(found) > PATHS:
        yield line((f"and {len(found) - PATHS:,} more lines", "warning"), indent=2)


def table(rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    """Yield a line for each of ``rows``, lists of cells of equal length, with aligned columns. Columns that
    are empty in all rows are left out."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for r in rows:
        yield line(aligned(r, widths), indent=4, hang=4)._replace(cells=filled_cells(r, widths))
