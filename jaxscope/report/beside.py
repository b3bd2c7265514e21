"""One function's programs side by side: a column a target or a setting, a row a figure, the least of a row marked.

What is marked is a count, a size or a bound: nothing here was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from rich.cells import cell_len

from jaxscope.analysis.bounds import Bounds
from jaxscope.analysis.programs import peak_bytes
from jaxscope.log.jobs import OK
from jaxscope.model.records import Program
from jaxscope.model.retargeted import fit
from jaxscope.model.run import Run
from jaxscope.report import contract
from jaxscope.report.escape import escape
from jaxscope.report.lines import BLANK, Line, line
from jaxscope.report.phrases import seconds, size
from jaxscope.report.targets import bounds_json, bounds_of, short
from jaxscope.report.variants import Column, Variant, by_function

MARK = " ◂"
LEGEND = "◂ the least of its row: counts, sizes and bounds; nothing was measured"
INDENT = 4
NAME, WIDEST = 24, 40  # columns of a setting's name and of its value


class Over(msgspec.Struct, frozen=True):
    """The collectives over some axes in one call, on one device. None: not known."""

    count: int
    executions: int | None
    wire_bytes: int | None


class Figures(msgspec.Struct, frozen=True):
    """What is compared of one program. ``over``: by axes joined with a comma; None where its text is not known."""

    state: str
    fusions: int | None = None
    over: dict[str, Over] | None = None
    used: int | None = None
    capacity: int | None = None
    fits: bool | None = None
    limits: Bounds | None = None
    cycles: int | None = None
    seconds: float | None = None


def figures(column: Column) -> Figures:
    """Those of the program in ``column``."""
    run, p = column.variant.run, column.program
    texts = run.texts_of(p).hlo
    made = texts if texts is not None and texts.module is not None else None
    over = None if made is None else _over(run, p)
    fusions = made.fusions.total if made is not None else None
    if column.target is None:
        memory = p.compiled.memory if p.compiled is not None else None
        used = peak_bytes(memory) if memory is not None else None
        return Figures(OK, fusions, over, used)
    found = fit(run, p)
    return Figures(
        p.state,
        fusions,
        over,
        found.used if found is not None else None,
        found.capacity if found is not None else None,
        found.fits if found is not None else None,
        bounds_of(run, p),
        made.estimated_cycles if made is not None else None,
        p.made.seconds if p.made is not None else None,
    )


def _over(run: Run, p: Program) -> dict[str, Over]:
    texts = run.texts_of(p).hlo
    assert texts is not None
    found: dict[str, Over] = {}
    for c in texts.collectives:
        key = "?" if c.axes is None else ",".join(c.axes)
        before = found.get(key, Over(0, 0, None))
        times = (
            None if before.executions is None or c.executions is None else before.executions + c.executions
        )
        found[key] = Over(before.count + 1, times, texts.wire_bytes_by_axes.get(key))
    return found


class Row(NamedTuple):
    """A figure of every column, in words.

    ``values``: what makes the least one, None where they are not to be compared; ``sure``: False of one that may be more.
    """

    name: str
    cells: list[str]
    values: list[float | None] | None = None
    sure: list[bool] | None = None


def nothing_over(axes: str, known: Mapping[str, object]) -> int | None:
    """0 for axes over which a program with collectives over those ``known`` sends nothing.

    None where it may be counted under another name: a sub-axis, several axes together, axes that nobody knows.
    """
    wanted = _names(axes)
    return None if any(not k.isdisjoint(wanted) or "?" in k for k in map(_names, known)) else 0


def _names(axes: str) -> set[str]:
    return {part.partition(":")[0] for part in axes.split(",")}


def rows(columns: Sequence[Column]) -> list[Row]:
    """The table of ``columns``: names of its columns first, then a row a figure that at least one of them has."""
    found = [figures(c) for c in columns]
    overs = sorted({axes for f in found for axes in f.over or () if axes})
    made = [
        Row("fusions", [_number(f.fusions) for f in found]),
        Row(
            "collectives",
            [_collectives(list(f.over.values()) if f.over is not None else None) for f in found],
        ),
    ]
    by_axes = [(axes, [None if f.over is None else _at(f.over, axes) for f in found]) for axes in overs]
    if len(overs) > 1:
        for axes, theirs in by_axes:
            made.append(
                Row(f"  over {_axes(axes)}", [_collectives(None if o is None else [o]) for o in theirs])
            )
    for axes, theirs in by_axes:
        sent = [None if o is None else o.wire_bytes for o in theirs]
        cells = [_size(o is not None, n) for o, n in zip(theirs, sent, strict=True)]
        made.append(Row(f"sent over {_axes(axes)}", cells, _plain(sent)))
    made.append(_memory(found))
    limits = [f.limits for f in found]
    least = [b.least if b is not None else None for b in limits]
    made.append(
        Row("least time (bound)", [f"{short(b.least)}, {escape(b.binds, 40)}" if b is not None and b.binds is not None else "" for b in limits], least, [_whole(b) for b in limits])
    )  # fmt: skip
    made.append(_bound("compute", [b.compute if b is not None else None for b in limits], limits))
    made.append(_bound("memory", [b.memory if b is not None else None for b in limits], limits))
    for axes in sorted({axes for b in limits if b is not None for axes in b.axes}):
        spent = [
            None if b is None else b.axes[axes] if axes in b.axes else nothing_over(axes, b.axes)
            for b in limits
        ]
        told = [
            b if b is not None and (v is not None or axes in b.axes) else None
            for v, b in zip(spent, limits, strict=True)
        ]
        made.append(_bound(_axes(axes), spent, told))
    cycles = [f.cycles for f in found]
    alike = len({_machine(c) for c in columns}) == 1  # a cycle of another machine is another time
    made.append(Row("cycles, estimated", [_number(n) for n in cycles], _plain(cycles) if alike else None))
    made.append(Row("compiled in", [_compiled(f) for f in found]))
    shown = [row for row in made if any(row.cells)]
    ran = [f.state == OK and f.fits is not False for f in found]
    return [*headings(columns), *(_marked(row, ran) for row in shown)]


def headings(columns: Sequence[Column]) -> list[Row]:
    """What tells the columns apart: the target where there are several, then each setting by name."""
    targets = [c.target or "" for c in columns]
    names = list(dict.fromkeys(name for c in columns for name in c.variant.settings))
    found = [Row("", [escape(t, 40) for t in targets])] if len(set(targets)) > 1 or not names else []
    for name in names:
        values = _told_apart([escape(c.variant.settings.get(name, "")) for c in columns])
        first, *rest = _broken(escape(name))
        found += [Row(first, values), *(Row(f"  {part}", [""] * len(columns)) for part in rest)]
    return found


def _broken(name: str) -> list[str]:
    """``name`` in parts of at most ``NAME`` columns, where it can be at the ends of its words."""
    parts = [""]
    for word in re.findall(r".+?(?:[-_.=]+(?=[^-_.=])|$)", name):
        if parts[-1] and cell_len(parts[-1] + word) > NAME:
            parts.append("")
        parts[-1] += word
        while cell_len(parts[-1]) > NAME:
            at = next(i for i in range(NAME, 0, -1) if cell_len(parts[-1][:i]) <= NAME)
            parts[-1:] = [parts[-1][:at], parts[-1][at:]]
    return parts


def _told_apart(values: list[str]) -> list[str]:
    """Long ones without the words that all begin with, which tell nothing apart."""
    if max(map(len, values)) <= NAME or len(set(values)) < 2:
        return [escape(v, WIDEST) for v in values]
    one, other = min(values), max(values)  # what these two begin with all begin with
    common = one[: next((i for i, c in enumerate(one) if other[i] != c), len(one))]
    at = max(common.rfind(c) for c in "/_.,:;=- ") + 1
    return [escape(f"…{v[at:]}" if at > 1 else v, WIDEST) for v in values]


def _bound(name: str, values: list[float | None], limits: Sequence[Bounds | None]) -> Row:
    cells = [short(v) if b is not None else "" for v, b in zip(values, limits, strict=True)]
    return Row(
        f"bound of {name}",
        cells
        if any(v != 0 for v, b in zip(values, limits, strict=True) if b is not None)
        else [""] * len(cells),
        values,
    )


def _marked(row: Row, ran: Sequence[bool]) -> Row:
    """The least marked: among the programs that could run, where all are known and not all the same."""
    known = [v for v, r in zip(row.values or [], ran, strict=False) if r]
    if row.values is None or len(known) < 2 or None in known or len(set(known)) < 2:
        return row
    least = min(v for v in known if v is not None)
    if row.sure is not None and not all(
        s for s, v, r in zip(row.sure, row.values, ran, strict=True) if r and v == least
    ):
        return row
    cells = [
        cell + MARK if r and v == least else cell
        for cell, v, r in zip(row.cells, row.values, ran, strict=True)
    ]
    return row._replace(cells=cells)


def _at(over: Mapping[str, Over], axes: str) -> Over | None:
    if axes in over:
        return over[axes]
    return None if nothing_over(axes, over) is None else Over(0, 0, 0)


def _whole(limits: Bounds | None) -> bool:
    """Are all bounds known? Where one is not the largest may be larger."""
    return limits is not None and None not in (limits.compute, limits.memory, *limits.axes.values())


def _plain(values: Sequence[int | None]) -> list[float | None]:
    return list(values)


def _machine(column: Column) -> str | None:
    return next((t.machine for t in column.variant.run.targets if t.name == column.target), column.target)


def _number(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def _size(known: bool, n: int | None) -> str:
    return "" if not known else "?" if n is None else size(n)


def _collectives(found: list[Over] | None) -> str:
    """``16, run 40x``: instructions, and how often they run in one call."""
    if found is None:
        return ""
    total, times = sum(o.count for o in found), 0
    for o in found:
        if o.executions is None:
            return f"{total:,}, run ?x"
        times += o.executions
    return f"{total:,}" if times == total else f"{total:,}, run {times:,}x"


def _memory(found: Sequence[Figures]) -> Row:
    rooms = {f.capacity for f in found}
    room = rooms.pop() if len(found) > 1 and len(rooms) == 1 else None  # said once
    cells = []
    for f in found:
        of = f" of {size(f.capacity)}" if room is None and f.capacity is not None else ""
        full = "does not fit" if f.fits is False else ""
        cells.append(full if f.used is None else f"{size(f.used)}{of}{f': {full}' if full else ''}")
    name = "memory of a device" if room is None else f"memory of {size(room)}"
    return Row(name, cells, _plain([f.used for f in found]))


def _axes(axes: str) -> str:
    return "unknown axes" if axes == "?" else escape(axes, 40)


def _compiled(f: Figures) -> str:
    if f.state == OK:
        return "" if f.seconds is None else seconds(f.seconds)
    return {
        "exhausted": "",
        "waiting": "waiting",
        "compiling": "being compiled",
        "skipped": "not lowered",
    }.get(f.state, "not compiled")


def table(columns: Sequence[Column], width: int) -> Iterator[Line]:
    """Their rows as lines of at most ``width``, where the names and one column have room in it; nothing without a figure."""
    made, heads = rows(columns), len(headings(columns))
    if len(made) == heads:
        return
    label = max(cell_len(row.name) for row in made)
    widths = [max(cell_len(row.cells[i]) for row in made) for i in range(len(columns))]
    at = 0
    while at < len(columns):
        end, used = at, label
        while end < len(columns) and (end == at or used + 2 + widths[end] <= width - INDENT):
            used += 2 + widths[end]
            end += 1
        if at:
            yield BLANK
        for n, row in enumerate(made):
            same = len(columns) > 1 and len(set(row.cells)) == 1
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
                (name, "dim" if n < heads or same else ""),
                *((cell, _style(cell.rstrip(), n < heads, same)) for cell in cells),
                indent=INDENT,
                hang=label + 2,
            )
        at = end


def _style(cell: str, heading: bool, same: bool) -> str:
    if heading:
        return "bold"
    if cell.endswith("does not fit"):
        return "red"
    return "green" if cell.endswith(MARK) else "dim" if same else ""


def as_json(variants: Sequence[Variant]) -> list[contract.Comparison]:
    """``comparisons``: an entry a function that has several columns."""
    return [
        contract.Comparison(f.id, [_column_json(n, c) for n, c in _numbered(variants, columns)])
        for f, columns in by_function(variants)
        if len(columns) > 1
    ]


def _numbered(variants: Sequence[Variant], columns: Sequence[Column]) -> Iterator[tuple[int | None, Column]]:
    """Each column with the position of its run among ``sub_runs``; None: the run itself."""
    for c in columns:
        n = next(i for i, v in enumerate(variants) if v is c.variant)
        yield (n - 1 if n else None), c


def _column_json(sub_run: int | None, column: Column) -> contract.Column:
    f = figures(column)
    over = None
    if f.over is not None:
        over = [
            contract.OverAxes.copy_of(o, axes=None if axes == "?" else [a for a in axes.split(",") if a])
            for axes, o in sorted(f.over.items())
        ]
    return contract.Column(
        sub_run=sub_run,
        settings=column.variant.settings,
        target=column.target,
        program=column.program.id,
        state=f.state,
        fusions=f.fusions,
        collectives=over,
        memory=contract.Fit(f.used, f.capacity, f.fits),
        bounds=bounds_json(f.limits),
        estimated_cycles=f.cycles,
        compile_seconds=f.seconds,
    )
