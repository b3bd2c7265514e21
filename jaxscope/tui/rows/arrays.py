"""Format a snapshot of the live arrays as a tree of variable names. Each row has the number, the size, the
sharding and the growth of the arrays below a name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.sums import known_sum
from jaxscope.model import arrays as model
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run
from jaxscope.present.arrays import UNNAMED, form, forms, moment, placement, total
from jaxscope.present.escape import escape
from jaxscope.present.render import text
from jaxscope.present.text import Places, count, size
from jaxscope.schema.keys import Partition
from jaxscope.tui.cells import Cell, Column, Part, number_column

FEW = 12  # a name of the first level is open at first if at most this many names are below it
BARS = "▁▂▃▄▅▆▇█"
# A step after the name of the variable: ``.name``, ``['key']``, ``[0]`` or ``[*]``.
_STEP = re.compile(r"\.[^.\[]++|\[(?:'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|[^\]'\"]*+)\]")


class Snapshots:
    """The snapshots of the live arrays of one process. Each is read from the log only once.

    Attributes:
      process: the process; None: no process has a snapshot.
      found: the snapshots, in order of time.
      sums: for each snapshot a dict: name (``state.params``, or a shorter one such as ``state``) -> bytes of
        all arrays with or below this name. Copies on several devices count once.
      growing: variable name -> how its arrays grow from snapshot to snapshot. Only names whose arrays grow
        are keys.
    """

    def __init__(self) -> None:
        self.process: Process | None = None
        self.found: list[Snapshot] = []
        self.sums: list[dict[str, int]] = []
        self.growing: dict[str, model.Growth] = {}

    def update(self, run: Run) -> bool:
        """Read the snapshots that the main process recorded since the last call, or those of the first
        process with snapshots if the main process has none. Return whether there were new ones."""
        main = run.main
        able = [p for p in ([main] if main is not None else []) + list(run.processes.values()) if p.snapshots]
        process = able[0] if able else None
        if process is not self.process:
            self.process, self.found, self.sums = process, [], []
        if process is None or len(process.snapshots) == len(self.found):
            return False
        for event in process.snapshots[len(self.found) :]:
            snapshot = model.read(process, event)
            self.found.append(snapshot)
            self.sums.append(_sums(snapshot))
        self.growing = {g.path or UNNAMED: g for g in model.growing(run) if g.process is process}
        return True

    def default(self, *, running: bool) -> int:
        """Return the index of the snapshot to show first; -1 if there is none. It is the latest if the
        program is ``running`` or if memory ran out at that snapshot, else the one that shows best what uses
        the memory (``model.arrays.fullest``)."""
        if running or not self.found:
            return len(self.found) - 1
        if self.found[-1].error is not None:
            return len(self.found) - 1
        fullest = model.fullest(self.found)
        return next(n for n, snapshot in enumerate(self.found) if snapshot is fullest)


def _sums(snapshot: Snapshot) -> dict[str, int]:
    """Return {name: bytes of the arrays with or below this name}; unknown sizes count as 0."""
    sums: dict[str, int] = {}
    for g in snapshot.groups:
        for name in prefixes(g.path):
            sums[name] = sums.get(name, 0) + (g.global_bytes or 0)
    return sums


def prefixes(path: str | None) -> list[str]:
    """Return ``path`` and all shorter paths that lead to it: ``a.b['c']`` -> ``["a", "a.b", "a.b['c']"]``.
    For None (arrays that no variable refers to), return ``[UNNAMED]``."""
    if path is None:
        return [UNNAMED]
    first = re.match(r"[^.\[]*", path)
    at = first.end() if first else 0
    found = [path[:at]] if at else []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return [*found, path]
        at = step.end()
        found.append(path[:at])
    return found or [path]


class Row(NamedTuple):
    """A row of the tree: a name, and the groups of arrays with that name or below it.

    Attributes:
      id: distinguishes the row from all others of the snapshot.
      prefix: the full name, for example ``state.params``.
      label: the part of the name that the row above does not show, for example ``.params``.
      depth: the row's level in the tree, 0 at the top; the row is indented by it.
      open: whether the rows below this one are shown; None: there are none.
    """

    id: str
    prefix: str
    label: str
    depth: int
    groups: tuple[Group, ...]
    open: bool | None

    @property
    def arrays(self) -> int:
        return sum(g.count for g in self.groups)

    @property
    def global_bytes(self) -> int | None:
        return known_sum(g.global_bytes for g in self.groups)

    @property
    def device_bytes(self) -> int | None:
        """Return the bytes of the row's arrays on the device that holds most of them. None if unknown."""
        held: dict[object, int] = {}
        for g in self.groups:
            if g.device_bytes is None:
                return None
            key = g.sharding.devices if g.sharding is not None else None
            held[key] = held.get(key, 0) + g.device_bytes
        if len(held) < 2:
            return sum(held.values())
        each: dict[int, int] = {}
        for devices, n in held.items():
            ids = sh.device_ids(devices) if isinstance(devices, str) else None
            if ids is None:
                return None
            for d in ids:
                each[d] = each.get(d, 0) + n
        return max(each.values(), default=0)

    @property
    def largest(self) -> Group:
        return max(self.groups, key=lambda g: g.global_bytes or 0)


class _Node:
    """A name in the tree, with the names directly below it. ``own``: the groups of arrays with exactly this
    name."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.children: dict[str, _Node] = {}
        self.own: list[Group] = []

    def groups(self) -> list[Group]:
        return [*self.own, *(g for child in self.children.values() for g in child.groups())]


def tree(snapshot: Snapshot, toggled: Collection[str], *, flat: bool = False) -> list[Row]:
    """Return the names of the arrays in ``snapshot`` as the rows of a tree. A name with more bytes comes
    before others of the same level.

    Args:
      toggled: the ids of the rows that the user switched from open to closed, or from closed to open.
      flat: return one row for each group of equal arrays instead of a tree of names.
    """
    if flat:
        ordered = sorted(snapshot.groups, key=_weight)
        return [_leaf(g, g.path if g.path is not None else UNNAMED, 0) for g in ordered]
    root = _Node("")
    for g in snapshot.groups:
        node = root
        for name in prefixes(g.path):
            node = node.children.setdefault(name, _Node(name))
        node.own.append(g)
    return list(_rows(root, 0, "", toggled))


def _rows(node: _Node, depth: int, above: str, toggled: Collection[str]) -> list[Row]:
    """Return the rows below ``node``, at the level ``depth``, the most bytes first. Labels leave out
    ``above``, the name in the row above."""
    made: list[tuple[int, str, list[Row]]] = []
    for child in node.children.values():
        inner = child
        while not inner.own and len(inner.children) == 1:  # show a name with a single one below it as one row
            inner = next(iter(inner.children.values()))
        groups = inner.groups()
        label = inner.prefix.removeprefix(above)
        if len(groups) == 1:
            rows = [_leaf(groups[0], label, depth)]
        else:
            below = len(inner.children) + len(inner.own)
            opened = (depth == 0 and below <= FEW and inner.prefix != UNNAMED) != (inner.prefix in toggled)
            rows = [Row(inner.prefix, inner.prefix, label, depth, tuple(groups), opened)]
            if opened:
                rows += _rows(inner, depth + 1, inner.prefix, toggled)
                rows += [_leaf(g, form(g), depth + 1) for g in sorted(inner.own, key=_weight)]
        made.append((-sum(g.global_bytes or 0 for g in groups), inner.prefix, rows))
    return [row for _, _, rows in sorted(made, key=lambda m: m[:2]) for row in rows]


def _leaf(g: Group, label: str, depth: int) -> Row:
    """Return the row of one group of equal arrays, which no other rows are below."""
    prefix = g.path if g.path is not None else UNNAMED
    placed = g.sharding.text if g.sharding is not None else ""
    line = f"{g.origin.file}:{g.origin.line}" if g.origin is not None else ""
    return Row("\0".join((prefix, form(g), placed, line)), prefix, label, depth, (g,), None)


def _weight(g: Group) -> tuple[int, str]:
    return -(g.global_bytes or 0), g.path or ""


def row_id(r: Row) -> str:
    return r.id


def spelled(g: Group) -> str:
    """Return the sharding of the arrays in the group ``g`` as short text: ``P(data, None)``, ``device 3``,
    ``one device``; ``?`` if unknown."""
    s = g.sharding
    if s is None:
        return "?"
    spec = sh.partition(s)
    if spec is not None:
        return _spec(spec)
    if s.kind == "SingleDeviceSharding":
        return f"device {s.devices}" if s.devices else "one device"
    return s.text


def _spec(p: Partition) -> str:
    """Return a PartitionSpec without quotes: ``P((data, model), None)``."""

    def axes(names: tuple[str, ...] | None) -> str:
        if names is None:
            return "UNCONSTRAINED"
        return f"({', '.join(names)})" if len(names) > 1 else names[0] if names else "None"

    more = [("unreduced", p.unreduced), ("reduced", p.reduced)]
    parts = [*map(axes, p.dimensions), *(f"{word}={{{', '.join(names)}}}" for word, names in more if names)]
    return f"P({', '.join(parts)})"


def placed(r: Row) -> list[Part]:
    """Return the sharding of the arrays of the row ``r``: ``P(data, None)``, or ``3 shardings`` if they
    differ. The text begins with ``●4`` if four devices hold equal copies of each part of an array."""
    ways = list(dict.fromkeys(spelled(g) for g in r.groups))
    made: list[Part] = [ways[0] if len(ways) == 1 else (f"{len(ways)} shardings", "dim")]
    copies = {g.replication for g in r.groups}
    if len(copies) == 1 and (n := copies.pop()) is not None and n > 1:
        made = [(f"●{n} ", "warning"), *made]
    return made


def _name(r: Row, snapshots: Snapshots) -> Cell:
    mark = {True: "▾ ", False: "▹ ", None: "  "}[r.open]
    style = "bold" if r.depth == 0 else ""
    grows: list[Part] = [(" ▲", "retrace")] if _growing(snapshots, r) else []
    return ["  " * r.depth + mark, (r.label, "warning" if r.prefix == UNNAMED else style), *grows]


def _on_a_device(r: Row, devices: int) -> Cell:
    whole = devices > 1 and r.device_bytes == r.global_bytes and bool(r.device_bytes)
    return [(size(r.device_bytes), "warning" if whole else "")]


def columns(snapshots: Snapshots, shown: int, devices: int) -> list[Column[Row]]:
    """Return the columns of the table for the snapshot with the index ``shown``. ``devices``: number of its
    devices."""
    return [
        Column("array", lambda r, _: _name(r, snapshots), order=lambda r: r.prefix),
        Column(
            "shape",
            lambda r, _: [(form(r.groups[0]) if len(r.groups) == 1 else "", "dim")],
            18,
            order=lambda r: form(r.largest),
            wide=96,
        ),
        number_column("n", lambda r: r.arrays, "{:,}".format, 5),
        number_column(
            "global",
            lambda r: r.global_bytes,
            lambda n: [(size(n), "bold")],
            9,
            unknown="the shape of an array is unknown",
        ),
        Column(
            "a device",
            lambda r, _: _on_a_device(r, devices),
            9,
            right=True,
            order=lambda r: r.device_bytes,
            first=True,
            unknown="the placement of an array is unknown",
        ),
        Column(
            "sharding",
            lambda r, _: placed(r),
            16,
            order=lambda r: spelled(r.largest),
            unknown="the sharding was not recorded",
        ),
        Column(
            "growth",
            lambda r, width: [
                (growth(snapshots, r.prefix, shown, width), "retrace" if _growing(snapshots, r) else "dim")
            ],
            8,
            wide=70,
            found=False,
        ),
    ]


def _growing(snapshots: Snapshots, r: Row) -> bool:
    """Return whether arrays of the row ``r`` grow from snapshot to snapshot."""
    return any(
        name == r.prefix or (r.open is None and name.startswith(r.prefix + "[")) for name in snapshots.growing
    )


def growth(snapshots: Snapshots, prefix: str, shown: int, width: int) -> str:
    """Draw the bytes of the arrays with or below the name ``prefix`` as bars: one bar for each of the last
    ``width`` snapshots until that with the index ``shown``. The largest value has the highest bar."""
    return sparkline([sums.get(prefix, 0) for sums in snapshots.sums[max(0, shown + 1 - width) : shown + 1]])


def sparkline(values: Sequence[int]) -> str:
    """Draw one bar of eight possible heights for each value: ``[0, 1, 4, 8]`` gives ``·▁▄█``. The largest
    value has the full height."""
    most = max(values, default=0)
    return "".join(BARS[max(0, -(-8 * v // most) - 1)] if v > 0 else "·" for v in values)


def title(snapshots: Snapshots, shown: int) -> tuple[str, str]:
    """Return (title, subtitle) of the table for the snapshot with the index ``shown``. The title has the time
    and totals of this snapshot. The subtitle is ``3 of 12 snapshots`` with bars for the bytes of the latest
    snapshots; empty if there is only one."""
    s = snapshots.found[shown]
    totals = [snapshot.known_bytes for snapshot in snapshots.found]
    line = sparkline(totals[-24:]) if len(totals) > 1 else ""
    which = f"{shown + 1} of {len(snapshots.found)} snapshots  {line}" if len(snapshots.found) > 1 else ""
    return f"Arrays {moment(s)}: {count(s.count, 'array')}, {total(s)}", which


def heading(r: Row) -> list[list[Part]]:
    """Return the lines that name the arrays of the row ``r``: the variable, the number of arrays and their
    bytes. If the row has several groups of equal arrays, also name the largest group."""
    g = r.largest
    name = r.prefix if g.path is not None else "no variable refers to these arrays"
    if len(r.groups) > 1:
        return [
            [(name, "title"), f"  {count(r.arrays, 'array')}, {size(r.global_bytes)}"],
            [("the largest: ", "dim"), g.path or UNNAMED, f"  {form(g)}"],
        ]
    return [[(name, "title"), f"  {forms(g)}"]]


def facts(r: Row, snapshots: Snapshots, places: Places) -> list[list[Part]]:
    """Return facts about the arrays of the row ``r``, one line each, as far as they are known. These are the
    placement of the largest group of equal arrays, the line that created this group, and how the row's arrays
    grow or else what keeps the group alive.

    Args:
      snapshots: all snapshots, which show how arrays grow.
      places: shortens file names.
    """
    g = r.largest
    made: list[list[Part]] = []
    if g.sharding is not None:
        made.append(placement(g))
    origin = places.frame(g.origin)
    if origin:
        made.append([("created at ", "dim"), origin])
    found = next(
        (snapshots.growing[n] for n in snapshots.growing if n == r.prefix or n.startswith(r.prefix + "[")),
        None,
    )
    if found is not None:
        keeper = text(model.held_by(found))
        held = f", {escape(keeper, 80)}" if keeper else ""
        each = "step" if found.in_steps else "second"
        made.append([(f"▲ grows by {size(found.more_bytes)} a {each}{held}", "retrace")])
    elif keeper := text(model.held_by(g)):
        made.append([("held by ", "dim"), escape(keeper, 80)])
    return made


def user(run: Run, r: Row) -> Compilation | None:
    """Return the latest call of a user's function that has an argument with the name of one of the arrays of
    the row ``r``. None if there is none among the last 2,000 recorded calls. Calls that missed only JAX's
    fast path do not count."""
    paths = {g.path for g in r.groups}
    for c in reversed(list(run.compilations.values())[-2_000:]):
        if (
            c.key is not None
            and c.function.user
            and not c.only_missed
            and any(leaf.path in paths for leaf in c.key.arguments)
        ):
            return c
    return None
