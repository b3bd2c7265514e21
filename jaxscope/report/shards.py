"""Draw which device holds which slice of an array, as a table whose rows and columns are the axes of the
mesh."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from jaxscope.analysis import sharding as sh
from jaxscope.present.arrays import slices
from jaxscope.present.escape import escape
from jaxscope.report.layout import Line, aligned, line
from jaxscope.schema.keys import Sharding

MOST_ROWS, MOST_COLUMNS = 32, 8


class Grid(NamedTuple):
    """A table that shows which device holds which slice of an array.

    Its columns are the coordinates on the last mesh axis, its rows those on the other axes. Axes of size 1 do
    not count. If only one axis is left, its coordinates are the rows, and there is one column.

    Attributes:
      heads: the headings of the columns: ``model 0``, ``model 1``; empty if there is only one column.
      rows: (heading, cells) of each row: ``data 0``, and for each column a device with its slice.
      devices: the number of devices that hold a part of the array.
    """

    heads: list[str]
    rows: list[tuple[str, list[sh.Cell]]]
    devices: int


def grid_of(s: Sharding, shape: Sequence[int]) -> Grid | None:
    """Return a table that shows which device holds which slice of an array with the sharding ``s`` and the
    shape ``shape``. If the sharding has no mesh, the table has a row for each device. Return None if the
    slices are unknown, or if fewer than two devices have a part of the array."""
    cells = sh.cells(s, shape)
    if cells is None or len(cells) < 2:
        return None
    by_device = {c.device: c for c in cells}
    grid = sh.grid(s)
    wide = [(name, size) for name, size in grid.axes if size > 1] if grid is not None else []
    if grid is None or not wide:
        return Grid([], [("", [c]) for c in cells], len(cells))
    *down, (across, columns) = wide if len(wide) > 1 else [*wide, ("", 1)]
    heads = [f"{escape(across, 30)} {k}" for k in range(columns)] if across else []
    rows = [
        (
            label,
            [by_device[d] for d in grid.devices[k * columns : (k + 1) * columns] if d in by_device],
        )
        for k, label in enumerate(_labels(down))
    ]
    return Grid(heads, rows, len(cells))


def drawing(s: Sharding, shape: Sequence[int]) -> Iterator[Line]:
    """Yield lines of text that show which device holds which slice of an array with the sharding ``s`` and
    the shape ``shape``, as a table (``Grid``). Yield nothing if the slices are unknown, or if fewer than two
    devices have a part of the array."""
    grid = grid_of(s, shape)
    if grid is None:
        return
    heads = grid.heads
    rows = [(label, [f"{c.device} {slices(c, shape)}" for c in cells]) for label, cells in grid.rows]
    shown = [(label, texts[:MOST_COLUMNS]) for label, texts in rows[:MOST_ROWS]]
    table = [["", *heads[:MOST_COLUMNS]], *([label, *texts] for label, texts in shown)]
    widths = [
        max(cell_len(row[k]) for row in table if k < len(row)) for k in range(max(len(row) for row in table))
    ]
    for k, row in enumerate(table):
        if k or heads:
            yield line((aligned(row, widths), "" if k else "dim"), indent=4)
    if len(rows) > MOST_ROWS or len(heads) > MOST_COLUMNS:
        yield line((f"{grid.devices:,} devices: not all are shown", "dim"), indent=4)


def _labels(axes: Sequence[tuple[str, int]]) -> list[str]:
    """Return a heading for each combination of coordinates on mesh axes, (name, size) each: ``["data 0, fsdp
    0", "data 0, fsdp 1", ...]``. The last axis changes fastest. There are at most 4 * MOST_ROWS."""
    names = [escape(name, 30) for name, _ in axes]
    every = itertools.product(*(range(size) for _, size in axes))
    return [
        ", ".join(f"{name} {k}" for name, k in zip(names, at, strict=True))
        for at in itertools.islice(every, 4 * MOST_ROWS)
    ]
