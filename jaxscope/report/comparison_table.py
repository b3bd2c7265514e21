"""Print the compiled programs of one function side by side, as a table. It has a column for each target (a
machine to compile for) or for each setting (values with which ``run --vary`` ran the program), and a row for
each figure, such as memory per device.

A mark shows the smallest value of a row. The figures are counts, sizes and bounds; nothing was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from jaxscope.analysis.bounds import Bounds
from jaxscope.analysis.hlo import axes
from jaxscope.analysis.hlo.axes import Axes
from jaxscope.log.jobs import OK
from jaxscope.model import metrics
from jaxscope.model.metrics import ProgramMetrics, Traffic
from jaxscope.present.escape import escape
from jaxscope.present.targets import STATES, least, short
from jaxscope.present.text import seconds, size
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.report.targets import bounds_json
from jaxscope.report.variants import Column, Variant, by_function

MARK = " ◂"
LEGEND = "◂ smallest value of its row. All values are computed from the compiled programs; none is measured"
INDENT = 4
NAME, WIDEST = 24, 40  # characters of a setting's name and of its value, at most
_UNFINISHED = {"exhausted": "", "waiting": "waiting", "compiling": "compiling", "skipped": STATES["skipped"]}
Amounts = list[float | None]


class Row(NamedTuple):
    """One row of the table: a figure, with its value in every column.

    Attributes:
      cells: the values as text.
      values: the values as numbers, so that the smallest can be marked (None among them: unknown); None: they
        cannot be compared.
      sure: for each column, True if the value is exact, False if the true value may be larger. None: all are
        exact.
      styles: for each column the style of its cell: ``error`` if the program does not fit, ``good`` if the
        value is the smallest. Empty: no cell has one.
    """

    name: str
    cells: list[str]
    values: Amounts | None = None
    sure: list[bool] | None = None
    styles: tuple[str, ...] = ()


def rows(columns: Sequence[Column]) -> list[Row]:
    """Return the rows of the table that compares the programs of ``columns``: first the headings, then one
    row for each figure that is known for at least one of the programs."""
    programs = [metrics.of(c.variant.run, c.program) for c in columns]
    ran = [p.state == OK and (p.fit is None or p.fit.fits is not False) for p in programs]
    found = [
        Row("fusions", [_number(None if p.fusions is None else p.fusions["total"]) for p in programs]),
        *_collectives(programs),
        _memory(programs),
        *_bounds([p.bounds for p in programs]),
        _cycles(columns, programs),
        Row("compiled in", [_compiled(p) for p in programs]),
    ]
    return [*headings(columns), *(_marked(row, ran) for row in found if any(row.cells))]


def headings(columns: Sequence[Column]) -> list[Row]:
    """Return the rows at the top of the table: one with the names of the targets, then one for each option or
    environment variable that ``run --vary`` set, with its value in each column.

    The row of targets is missing if all targets are equal and ``run --vary`` set something. A long name takes
    several rows.
    """
    targets = [c.target or "" for c in columns]
    names = list(dict.fromkeys(name for c in columns for name in c.variant.settings))
    found = [Row("", [escape(t, 40) for t in targets])] if len(set(targets)) > 1 or not names else []
    for name in names:
        values = _shortened([escape(c.variant.settings.get(name, "")) for c in columns])
        first, *rest = _broken(escape(name))
        found += [Row(first, values), *(Row(f"  {part}", [""] * len(columns)) for part in rest)]
    return found


def _broken(name: str) -> list[str]:
    """Break the name of an option or variable of ``run --vary`` into parts that take at most ``NAME`` columns
    in a terminal, between words if possible."""
    parts = [""]
    for word in re.findall(r".+?(?:[-_.=]+(?=[^-_.=])|$)", name):
        if parts[-1] and cell_len(parts[-1] + word) > NAME:
            parts.append("")
        parts[-1] += word
        while cell_len(parts[-1]) > NAME:
            at = next(i for i in range(NAME, 0, -1) if cell_len(parts[-1][:i]) <= NAME)
            parts[-1:] = [parts[-1][:at], parts[-1][at:]]
    return parts


def _shortened(values: list[str]) -> list[str]:
    """Return ``values``, each cut to WIDEST characters. If one is longer than NAME, ``…`` replaces the words
    with which all of them begin, unless all are equal."""
    if max(map(len, values)) <= NAME or len(set(values)) < 2:
        return [escape(v, WIDEST) for v in values]
    # All values begin with what the first and the last in alphabetical order have in common.
    one, other = min(values), max(values)
    common = one[: next((i for i, c in enumerate(one) if other[i] != c), len(one))]
    at = max(common.rfind(c) for c in "/_.,:;=- ") + 1
    return [escape(f"…{v[at:]}" if at > 1 else v, WIDEST) for v in values]


def _marked(row: Row, ran: Sequence[bool]) -> Row:
    """Return ``row`` with a mark in the cell of its smallest value, if all values are known and not all
    equal, and the smallest is exact. ``ran``: for each column, whether its value counts."""
    known = [v for v, r in zip(row.values or [], ran, strict=False) if r]
    if row.values is None or len(known) < 2 or None in known or len(set(known)) < 2:
        return row
    least = min(v for v in known if v is not None)
    if row.sure is not None and not all(
        s for s, v, r in zip(row.sure, row.values, ran, strict=True) if r and v == least
    ):
        return row
    smallest = [r and v == least for v, r in zip(row.values, ran, strict=True)]
    cells = [cell + MARK if s else cell for cell, s in zip(row.cells, smallest, strict=True)]
    styles = row.styles or ("",) * len(cells)
    styles = tuple("good" if s else style for s, style in zip(smallest, styles, strict=True))
    return row._replace(cells=cells, styles=styles)


def nothing_over(over: Axes, known: Iterable[Axes]) -> int | None:
    """Return 0 if a program certainly sends nothing over the mesh axes ``over``. Return None if it may,
    because a collective communicates over unknown axes or over one of ``over``.

    Args:
      over: the mesh axes; not an element of ``known``.
      known: the axes over which the program's collectives communicate.
    """
    return None if any(k is None or axes.names(k) & axes.names(over) for k in known) else 0


def _collectives(programs: Sequence[ProgramMetrics]) -> Iterator[Row]:
    """Yield the rows about collectives: their number, and for each set of mesh axes the number and the bytes
    sent."""
    every = [None if p.traffic is None else list(p.traffic.values()) for p in programs]
    yield Row("collectives", [_executed(found) for found in every])
    every_axes = sorted({a for p in programs for a in p.traffic or () if a != ()}, key=axes.text)
    by_axes = {a: [None if p.traffic is None else _over(p.traffic, a) for p in programs] for a in every_axes}
    for a, found in by_axes.items() if len(by_axes) > 1 else ():
        yield Row(f"  over {_axes(a)}", [_executed(None if t is None else [t]) for t in found])
    for a, found in by_axes.items():
        sent: Amounts = [None if t is None else t.wire_bytes for t in found]
        cells = ["" if t is None else size(t.wire_bytes) for t in found]
        yield Row(f"sent over {_axes(a)}", cells, sent)


def _over(traffic: Mapping[Axes, Traffic], over: Axes) -> Traffic | None:
    """Return the collectives of a program over the mesh axes ``over``: zeros if the program certainly has
    none; None if unknown. ``traffic`` has all its collectives by mesh axes."""
    if over in traffic:
        return traffic[over]
    return None if nothing_over(over, traffic) is None else Traffic(0, 0, 0)


def _executed(traffic: Sequence[Traffic] | None) -> str:
    """Return the number of collectives in a program, and how often they run in one call: ``16, run 40x``.
    ``traffic`` has their sum for each set of mesh axes; None: unknown, and the text is empty."""
    if traffic is None:
        return ""
    total, executions = sum(t.count for t in traffic), [t.executions for t in traffic]
    if None in executions:
        return f"{total:,}, run ?x"
    times = sum(n or 0 for n in executions)
    return f"{total:,}" if times == total else f"{total:,}, run {times:,}x"


def _memory(programs: Sequence[ProgramMetrics]) -> Row:
    capacities = [p.fit.capacity if p.fit is not None else None for p in programs]
    common = capacities[0] if len(programs) > 1 and len(set(capacities)) == 1 else None
    cells, styles = [], []
    for p, capacity in zip(programs, capacities, strict=True):
        capacity_text = f" of {size(capacity)}" if common is None and capacity is not None else ""
        full = "does not fit" if p.fit is not None and p.fit.fits is False else ""
        styles.append("error" if full else "")
        used = p.used_bytes
        cells.append(full if used is None else f"{size(used)}{capacity_text}{f': {full}' if full else ''}")
    name = "memory per device" if common is None else f"memory of {size(common)}"
    return Row(name, cells, [p.used_bytes for p in programs], styles=tuple(styles))


def _bounds(bounds: Sequence[Bounds | None]) -> Iterator[Row]:
    """Yield the rows with lower bounds on the time of one call: the largest bound, then each bound."""
    yield Row(
        "least time (bound)",
        ["" if b is None else least(b) for b in bounds],
        [None if b is None else b.least for b in bounds],
        # The least time is the largest bound; if a bound is unknown, it may be the largest.
        [b is not None and None not in (b.compute, b.memory, *b.axes.values()) for b in bounds],
    )
    yield _bound("compute", [None if b is None else (b.compute,) for b in bounds])
    yield _bound("memory", [None if b is None else (b.memory,) for b in bounds])
    for over in sorted({over for b in bounds if b is not None for over in b.axes}, key=axes.text):
        yield _bound(_axes(over), [None if b is None else _bound_over(b, over) for b in bounds])


def _bound_over(b: Bounds, over: Axes) -> tuple[float | None] | None:
    """Return the bound for collectives over the mesh axes ``over``, as ``_bound`` takes it: (0,) if the
    program certainly sends nothing over these axes, None if unknown."""
    if over in b.axes:
        return (b.axes[over],)
    return None if nothing_over(over, b.axes) is None else (0,)


def _bound(name: str, bounds: Sequence[tuple[float | None] | None]) -> Row:
    """Return the row with a lower bound on the time of one call, for each column. If each bound is 0 or
    missing, its cells are empty.

    Args:
      name: what the bound is about: ``compute``, ``memory``, or mesh axes.
      bounds: for each column ``(seconds,)``, ``(None,)`` if the bound is unknown, or None if the program has
        no bound of this kind.
    """
    shown = any(f is not None and f[0] != 0 for f in bounds)
    cells = [short(f[0]) if shown and f is not None else "" for f in bounds]
    return Row(f"bound of {name}", cells, [f and f[0] for f in bounds])


def _cycles(columns: Sequence[Column], programs: Sequence[ProgramMetrics]) -> Row:
    machines = {
        next((t.machine for t in c.variant.run.targets if t.name == c.target), c.target) for c in columns
    }
    cycles: Amounts = [p.cycles for p in programs]
    # Cycles of different machines take different times.
    return Row(
        "cycles, estimated", [_number(p.cycles) for p in programs], cycles if len(machines) == 1 else None
    )


def _compiled(p: ProgramMetrics) -> str:
    """Return how long compiling for the target took, or why there is no program. Empty for this machine."""
    if p.state == OK:
        return "" if p.seconds is None else seconds(p.seconds)
    return _UNFINISHED.get(p.state, "not compiled")


def _number(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def _axes(over: Axes) -> str:
    return "unknown axes" if over is None else escape(axes.text(over), 40)


def table(columns: Sequence[Column], width: int) -> Iterator[Line]:
    """Yield the lines of the table that compares the programs of ``columns``. If the columns do not fit side
    by side into ``width`` characters, the rest follows below as further tables. Yield nothing if no figure of
    any program is known."""
    table_rows, heads = rows(columns), len(headings(columns))
    if len(table_rows) == heads:
        return
    label = max(cell_len(row.name) for row in table_rows)
    widths = [max(cell_len(row.cells[i]) for row in table_rows) for i in range(len(columns))]
    at = 0
    while at < len(columns):
        end, used = at, label
        while end < len(columns) and (end == at or used + 2 + widths[end] <= width - INDENT):
            used += 2 + widths[end]
            end += 1
        if at:
            yield BLANK
        for n, row in enumerate(table_rows):
            plain = "bold" if n < heads else "dim" if len(columns) > 1 and len(set(row.cells)) == 1 else ""
            styles = [style or plain for style in row.styles or ("",) * len(columns)]
            cells = [
                f"  {row.cells[i]:<{widths[i] - cell_len(row.cells[i]) + len(row.cells[i])}}"
                for i in range(at, end)
            ]
            while cells and not cells[-1].strip():
                cells.pop()
            if cells:
                cells[-1] = cells[-1].rstrip()
            name = row.name + " " * (label - cell_len(row.name) if cells else 0)
            yield line(
                (name, "dim" if plain else ""),
                *zip(cells, styles[at:end], strict=False),
                indent=INDENT,
                hang=label + 2,
            )._replace(cells=(row.name, *row.cells[at:end]))
        at = end


def as_json(variants: Sequence[Variant]) -> list[contract.Comparison]:
    """Return the entry ``comparisons`` of the JSON report: one comparison for each function with several
    columns. ``variants`` are the run itself, then its sub-runs (the same program with other settings or
    another number of devices)."""
    # Index in sub_runs; None: the run itself
    number = {id(v): n - 1 if n else None for n, v in enumerate(variants)}
    return [
        contract.Comparison(f.id, [_column_json(number[id(c.variant)], c) for c in columns])
        for f, columns in by_function(variants)
        if len(columns) > 1
    ]


def _column_json(sub_run: int | None, column: Column) -> contract.Column:
    p = metrics.of(column.variant.run, column.program)
    by_axes = [
        contract.OverAxes.copy_of(t, axes=None if over is None else list(over))
        for over, t in sorted((p.traffic or {}).items(), key=lambda item: axes.text(item[0]))
    ]
    return contract.Column(
        sub_run=sub_run,
        settings=column.variant.settings,
        target=column.target,
        program=column.program.id,
        state=p.state,
        fusions=None if p.fusions is None else p.fusions["total"],
        collectives=None if p.traffic is None else by_axes,
        memory=contract.Fit(
            p.used_bytes,
            p.fit.capacity if p.fit is not None else None,
            p.fit.fits if p.fit is not None else None,
        ),
        bounds=bounds_json(p.bounds),
        estimated_cycles=p.cycles,
        compile_seconds=p.seconds,
    )
