"""Draw the shards of an array on the device mesh, and the bytes on each device as a bar.

Each shard has a color and a fill character; copies of a shard look the same. Fill character and device number
make the drawing readable without colors.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.cells import cell_len

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.sharding import Cell
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.present.arrays import slices, spread
from jaxscope.present.text import size
from jaxscope.schema.keys import Sharding
from jaxscope.tui.cells import Part
from jaxscope.tui.rows.arrays import BARS

MOST = 64  # devices drawn one by one
FILLS = "█▓▒░▚▞▀▄"
COLORS = tuple(f"shard{n}" for n in range(8))
LEGEND = 8
BARS_MOST = 16  # devices with a bar of their own

Lines = list[list[Part]]


def look_of(shard: int) -> tuple[str, str]:
    """Return (fill character, style) for drawing the shard with the number ``shard``. The first 64 shards
    look different from each other."""
    return FILLS[(shard + shard // 8) % 8], COLORS[shard % 8]


def drawn(g: Group, width: int) -> Lines:
    """Draw which shard (part of an array) each device holds, with a legend of the shards. ``g`` is a group of
    equal arrays. If there are more than MOST devices, draw how each mesh axis divides the array. If the
    placement is unknown, return a line that says so. ``width`` is the number of characters of a line."""
    s = g.sharding
    if s is None or g.shape is None or not all(isinstance(d, int) and d >= 0 for d in g.shape):
        return [[("How it is sharded is not known.", "dim")]]
    shape = [d for d in g.shape if isinstance(d, int)]
    devices = sh.device_ids(s.devices)
    if devices is not None and len(devices) == 1:
        return [[("whole, on device ", "dim"), f"{devices[0]}"]]
    if devices is not None and len(devices) > MOST:
        return _by_axis(s, shape, width)
    cells = sh.cells(s, shape)
    if cells is None:
        return [[("The placement of its shards is not known for ", "dim"), s.text]]
    parts = {part: n for n, part in enumerate(dict.fromkeys(c.part for c in cells))}
    grid = sh.grid(s)
    axes = grid.axes if grid is not None else (("", len(cells)),)
    ordered = cells
    if grid is not None:
        by_device = {c.device: c for c in cells}
        ordered = [by_device[d] for d in grid.devices]
    return [*_grid(axes, ordered, parts, width), *_legend(ordered, parts, shape)]


def _grid(
    axes: Sequence[tuple[str, int]], cells: Sequence[Cell], parts: dict[tuple[int, ...], int], width: int
) -> Lines:
    """Draw the devices of a mesh: columns for its last axis and rows for the others. A row that is too long
    is divided into several.

    Args:
      axes: (name, size) of each axis of the mesh.
      cells: for each device, in mesh order, which part of the array it holds.
      parts: part of the array -> the number of its shard, which determines fill and color.
      width: the number of characters of a line.
    """
    made: Lines = []
    mesh = " x ".join(f"{name}={n}" for name, n in axes if name)
    if mesh:
        made.append([("mesh ", "dim"), mesh])
    *outer, (name, columns) = axes
    labels = [
        " ".join(f"{axis} {i}" for (axis, _), i in zip(outer, at, strict=True))
        for at in itertools.product(*(range(n) for _, n in outer))
    ]
    margin = min(width // 3, max(map(cell_len, labels), default=0))
    digits = max(len(str(c.device)) for c in cells)
    room = max(8, width - margin - 1)
    size_of = digits + 6 if columns * (digits + 7) <= room or not outer else digits + 2
    per_row = max(1, min(columns, room // (size_of + 1)))
    if not outer and columns > per_row:
        per_row = 1 << (per_row.bit_length() - 1)  # rows of a power of two line up
    if outer and name and columns <= per_row:
        heads = [f"{name} {i}" if len(name) + 2 <= size_of else str(i) for i in range(columns)]
        line = " ".join(h[:size_of].center(size_of) for h in heads)
        made.append([(" " * (margin + 1) + line, "dim")])
    for n, label in enumerate(labels):
        row = cells[n * columns : (n + 1) * columns]
        for at in range(0, columns, per_row):
            head = label if at == 0 else ""
            line_parts: list[Part] = [(head[:margin].rjust(margin) + " ", "dim")]
            for c in row[at : at + per_row]:
                fill, style = look_of(parts[c.part])
                side, gap = (fill * 2, " ") if size_of > digits + 2 else (fill, "")
                line_parts += [(side, style), f"{gap}{c.device:>{digits}}{gap}", (side, style), " "]
            made.append(line_parts)
    return made


def _legend(cells: Sequence[Cell], parts: dict[tuple[int, ...], int], shape: Sequence[int]) -> Lines:
    """Return at most LEGEND lines with a shard's fill, its part of the array (of shape ``shape``) and its
    devices. The other parameters are those of ``_grid``."""
    copies = grouped((c.part, c) for c in cells)
    held = max(map(len, copies.values()))
    if len(parts) == 1:
        return [[(f"● replicated on all {len(cells)} devices", "warning")]]
    made: Lines = [
        [(f"● same fill = same bytes: {held} copies", "warning")]
        if held > 1
        else [("every device holds a different part", "dim")]
    ]
    for part, number in itertools.islice(parts.items(), LEGEND):
        fill, style = look_of(number)
        holders = ", ".join(str(c.device) for c in copies[part])
        made.append(
            [
                (fill * 2, style),
                f" {slices(copies[part][0], shape)}",
                (f"  on {'device' if len(copies[part]) == 1 else 'devices'} {holders}", "dim"),
            ]
        )
    if len(parts) > LEGEND:
        made.append([(f"and {len(parts) - LEGEND} more parts", "dim")])
    return made


def _by_axis(s: Sharding, shape: Sequence[int], width: int) -> Lines:
    """Draw how each mesh axis of the sharding ``s`` divides an array with the shape ``shape``: ``splits
    dimension 0 (512) into 4 parts`` or ``copies``. Used for meshes with too many devices to draw each."""
    grid, spec = sh.grid(s), sh.split_axes(s)
    if grid is None or spec is None:
        found = sh.layout(s, len(shape))
        if found is None:
            return [[("The placement of its shards is not known for ", "dim"), s.text]]
        copies = f", {found.replication:,} copies of each" if found.replication > 1 else ""
        return [
            [
                f"{len(found.devices):,} devices, parts {' x '.join(map(str, found.parts)) or '1'}",
                (copies, "warning"),
            ]
        ]
    dimension = {axis: d for d, names in enumerate(spec[0]) for axis in names}
    made: Lines = [
        [
            ("mesh ", "dim"),
            " x ".join(f"{name}={n}" for name, n in grid.axes),
            (f"  {len(grid.devices):,} devices", "dim"),
        ]
    ]
    margin = min(width // 3, max(cell_len(f"{name}={n}") for name, n in grid.axes))
    room = max(4, width - margin - 3)
    for name, n in grid.axes:
        split = name in dimension
        role: list[Part] = (
            [f"splits dimension {dimension[name]} ({shape[dimension[name]]:,}) into {n:,} parts"]
            if split and dimension[name] < len(shape)
            else ["partial sums, not yet reduced"]
            if name in spec[1]
            else [("● copies", "warning") if n > 1 else ("one device", "dim")]
        )
        made.append([(f"{name}={n}"[:margin].ljust(margin) + " ", "bold"), *role])
        strip: list[Part] = [look_of(i if split else 0) for i in range(min(n, room))]
        made.append([" " * (margin + 1), *strip, "…" if n > room else ""])
    return made


def devices(s: Snapshot, width: int) -> Lines:
    """Draw the bytes on each device as a bar. A full bar is the largest limit of an allocator, or the most
    bytes on any device if these are more. With more than BARS_MOST (16) devices, each one is a single
    character. Empty if no device has bytes."""
    by_device = sorted(s.by_device.items())
    if not by_device or not any(n for _, n in by_device):
        return []
    limits = {m.device: m.limit for m in s.memory if m.limit}
    used = {m.device: m.in_use for m in s.memory if m.in_use is not None}
    top = max([*limits.values(), *(n for _, n in by_device)])
    made: Lines = [
        [
            ("Devices", "title"),
            f"  {spread(n for _, n in by_device)}",
            (f" of {size(top)}" if limits else "", "dim"),
        ]
    ]
    if len(by_device) > BARS_MOST:
        per_row = max(8, min(32, width - 16))
        for at in range(0, len(by_device), per_row):
            row = by_device[at : at + per_row]
            bars = "".join(BARS[max(0, -(-8 * n // top) - 1)] if n else "·" for _, n in row)
            made.append([(f"{row[0][0]:>6}-{row[-1][0]:<6} ", "dim"), (bars, "compile")])
        return made
    per_line = 2 if width >= 64 and len(by_device) > 4 and not limits else 1
    bar = max(4, width // per_line - (34 if limits else 18))
    drawn_bars: list[list[Part]] = []
    for d, n in by_device:
        full = round(bar * n / top)
        other = max(0, round(bar * ((used.get(d) or 0) - n) / top))
        amount = f" {size(n):>10}" + (f" of {size(used[d] or 0)} in use" if d in used else "")
        drawn_bars.append(
            [
                (f"{d:>4} ", "bold"),
                ("█" * full, "compile"),
                ("▒" * other, "lower"),
                ("·" * (bar - full - other), "dim"),
                f"{amount} ",
            ]
        )
    rows = -(-len(drawn_bars) // per_line)
    for n in range(rows):
        made.append([part for k in range(n, len(drawn_bars), rows) for part in drawn_bars[k]])
    return made
