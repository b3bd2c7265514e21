"""Format the collectives of compiled programs as table rows (mesh axes, how often they run, bytes, origin),
and draw the mesh over which they communicate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from jaxscope.analysis.hlo.axes import names
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.programs import Texts
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.present.programs import (
    axes,
    bytes_within,
    executions,
    line_of,
    over_axes,
    overlap,
    reason,
    sent_by_axes,
    times,
)
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, count, size
from jaxscope.schema.findings import LIKELY
from jaxscope.tui.cells import Cell, Column, Part, number_column

OP = 160  # characters of an HLO instruction's op_name that are shown
MOST_ROWS = 8  # rows of the largest mesh that is drawn


class Row(NamedTuple):
    """Collectives of one program that differ only in their names, as in the equal layers of a model."""

    program: Program
    alike: tuple[Collective, ...]

    @property
    def collective(self) -> Collective:
        return self.alike[0]


def rows(programs: Mapping[str, Program], texts: Mapping[str, Texts]) -> list[Row]:
    """Return the collectives of ``programs`` as rows, ordered by the bytes sent in one call, most first.
    Collectives of one program that differ only in their names share a row. ``programs`` and ``texts`` (the
    analyzed texts) have program ids as keys; programs without an analyzed text have no rows."""
    found: dict[tuple[object, ...], list[Collective]] = {}
    for id, read in list(texts.items()):
        if id in programs and read.hlo is not None:
            for c in read.hlo.collectives:
                found.setdefault((id, *_look(c)), []).append(c)
    rows = [Row(programs[str(key[0])], tuple(alike)) for key, alike in found.items()]
    return sorted(rows, key=lambda r: (-(cost(r) or 0), r.program.id, r.collective.name))


def _look(c: Collective) -> tuple[object, ...]:
    """Return what the table shows of a collective, apart from its name and program. Collectives of one
    program for which this is equal share a row."""
    axes = None if c.axes is None else tuple(c.axes)
    line = (c.source.file, c.source.line) if c.source is not None else None
    return (
        c.kind,
        axes,
        c.groups,
        c.group_size,
        c.bytes,
        c.wire_bytes,
        c.executions,
        c.conditional,
        c.origin,
        c.is_async,
        c.overlap,
        line,
    )


def cost(r: Row) -> int | None:
    """Return the bytes that one device sends for all collectives of the row in one call of the program; None
    if unknown."""
    sent = r.collective.sent_bytes
    return None if sent is None else sent * len(r.alike)


def row_id(r: Row) -> str:
    return f"{r.program.id}\0{r.collective.computation}\0{r.collective.name}"


def owner(run: Run, p: Program) -> str:
    """Return the name of the first compilation of the program ``p``: ``train_step #4``. If none is known,
    return the name of its HLO module, or else its id."""
    c = p.compilations[0] if p.compilations else None
    if c is None:
        return p.module or p.id
    return compilation_name(run, c)


def _origin(r: Row, _: int) -> Cell:
    word = r.collective.origin or "?"
    return [("requested" if word == "asked" else word, "warning" if word == "inserted" else "")]


def _overlap(r: Row) -> str:
    return {True: "yes", False: "no", None: "?"}[r.collective.overlap]


def _line(r: Row, places: Places) -> str:
    guess = "~" if r.collective.source_certainty == LIKELY else ""
    return guess + (places.frame(r.collective.source) or "?")


def columns(run: Run, places: Places) -> list[Column[Row]]:
    return [
        Column(
            "collective",
            lambda r, _: [(r.collective.kind, "collective")],
            18,
            order=lambda r: r.collective.kind,
        ),
        Column(
            "axes",
            lambda r, _: axes(r.collective),
            12,
            order=lambda r: axes(r.collective),
            unknown="the mesh of the program is unknown",
        ),
        *_traffic_columns(),
        *_origin_columns(run, places),
    ]


def _traffic_columns() -> list[Column[Row]]:
    """Return the columns of numbers: how many collectives a row has, their bytes, and how often they run."""
    return [
        number_column("n", lambda r: len(r.alike), "{:,}".format, 4),
        number_column(
            "bytes",
            lambda r: r.collective.bytes,
            size,
            9,
            unknown="the type of the result could not be read",
        ),
        number_column(
            "sends",
            cost,
            lambda n: [(size(n), "bold")],
            9,
            wide=90,
            unknown="its size, or how often it runs, is unknown",
        ),
        Column(
            "runs",
            lambda r, _: ("≤" if r.collective.branches else "") + executions(r.collective.executions),
            6,
            right=True,
            order=lambda r: r.collective.executions,
            first=True,
            wide=84,
            unknown="the number of iterations of a loop is unknown",
        ),
    ]


def _origin_columns(run: Run, places: Places) -> list[Column[Row]]:
    """Return the columns for the origin of the collectives of a row, their overlap with computation, their
    source line and their program."""
    return [
        Column(
            "origin",
            _origin,
            9,
            order=lambda r: r.collective.origin or "?",
            unknown="the text does not show who requested it",
        ),
        Column(
            "overlap",
            lambda r, _: _overlap(r),
            7,
            order=_overlap,
            wide=100,
            unknown="the text does not show the order of execution",
        ),
        Column(
            "line",
            lambda r, _: _line(r, places),
            order=lambda r: _line(r, places),
            unknown="the compiler kept no source line for it",
        ),
        Column(
            "program",
            lambda r, _: [(owner(run, r.program), "dim")],
            18,
            order=lambda r: owner(run, r.program),
            wide=100,
        ),
    ]


def mesh(r: Row, texts: Mapping[str, Texts], width: int) -> list[list[Part]]:
    """Draw the mesh of the program of the row ``r``: bars for the bytes that each device sends over each set
    of axes in one call, and below them the devices, with thick lines along the axes over which the row's
    collectives communicate. The devices are left out if the mesh is large or has many axes. Return an empty
    list if the mesh is unknown.

    Args:
      texts: the analyzed texts by program id.
      width: the number of characters of a line.
    """
    read = texts.get(r.program.id)
    hlo = read.hlo if read is not None else None
    if hlo is None or not hlo.mesh:
        return []
    c = r.collective
    used = names(c.axes_around or c.axes)
    made: list[list[Part]] = [
        [("mesh ", "dim"), " x ".join(f"{name}={n}" for name, n in hlo.mesh)],
        [("sent by each device in one call:", "dim")],
    ]
    sent = sent_by_axes(hlo)
    most = max((n.most or n.least for _, n in sent), default=0)
    margin = min(max((cell_len(over_axes(over)) for over, _ in sent), default=0), max(4, width // 3))
    room = max(4, width - margin - 14)
    for over, n in sent:
        here = over == c.over
        length = n.most or n.least
        bar = "█" * max(1, round(room * length / most)) if length else ""
        made.append(
            [
                (over_axes(over)[:margin].ljust(margin) + " ", "bold" if here else ""),
                bytes_within(n).rjust(10) + " ",
                (bar, "collective" if here else "lower"),
            ]
        )
    return [*made, *([[], *drawn] if (drawn := _grid(hlo.mesh, used, width)) else [])]


def _grid(mesh: Sequence[tuple[str, int]], used: Collection[str], width: int) -> list[list[Part]]:
    """Draw the devices of a mesh in rows and columns, with thick lines along the axes in ``used``. Return an
    empty list unless one or two axes are longer than 1, or if the drawing needs more than ``width``
    characters or MOST_ROWS rows."""
    large = [(name, n) for name, n in mesh if n > 1]
    if not 1 <= len(large) <= 2:
        return []
    (above, rows), (across, columns) = large if len(large) == 2 else [("", 1), large[0]]
    cell = len(str(rows * columns - 1))
    margin = max(cell_len(above), len(str(rows - 1))) + 3 if above else 0
    if margin + columns * (cell + 3) > width or rows > MOST_ROWS:
        return []
    beside, below = (("━━━", "collective") if across in used else ("   ", "")), above in used
    made: list[list[Part]] = [
        [(" " * margin, ""), (f"{across} →", "collective" if across in used else "dim")]
    ]
    for row in range(rows):
        label = f"{above} ↓" if row == 0 and above else ""
        line: list[Part] = [(label.ljust(margin), "collective" if below else "dim")]
        for column in range(columns):
            line += [f"{row * columns + column:>{cell}}", *([beside] if column < columns - 1 else [])]
        made.append(line)
        if row < rows - 1 and below:
            joint = ("┃".rjust(cell) + "   ") * columns
            made.append([" " * margin, (joint.rstrip(), "collective")])
    return made


def detail(run: Run, r: Row, places: Places) -> list[list[Part]]:
    """Return what is known about the collectives of the row ``r``, a line for each fact. ``places`` shortens
    file names."""
    c = r.collective
    made: list[list[Part]] = [
        [
            (c.kind, "collective"),
            " ",
            (c.name, "bold"),
            f" and {len(r.alike) - 1} alike" if len(r.alike) > 1 else "",
            f"  in {owner(run, r.program)}",
        ]
    ]
    sent = cost(r)
    if c.groups is not None and c.group_size is not None:
        made.append([f"{count(c.groups, 'group')} of {count(c.group_size, 'device')} over {axes(c)}"])
    else:
        made.append([f"over {axes(c)}"])
    made.append(
        [
            "result " + (size(c.bytes)) + " on a device · sends ",
            (size(c.wire_bytes)),
            " each time · ",
            (size(sent)),
            " in one call of the program" + (" for all of them" if len(r.alike) > 1 else ""),
        ]
    )
    facts = [
        f"in a branch: runs {times(c)}" if c.branches else "",
        reason(c, places) or "origin unknown",
        "asynchronous" if c.is_async else "",
        overlap(c),
    ]
    made.append([" · ".join(filter(None, facts))])
    if c.source is not None:
        made.append([line_of(c, places), (f"   {(c.op_name or '')[:OP]}", "dim")])
    elif c.op_name:
        made.append([(c.op_name[:OP], "dim")])
    return made
