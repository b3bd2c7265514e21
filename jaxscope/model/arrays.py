"""Read the snapshots of a run's live arrays: the size of each group, its devices, and which groups grow."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.paths import tokens
from jaxscope.model.records import Process
from jaxscope.model.run import Run
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.events import ArraysSeen
from jaxscope.schema.keys import Frame, Sharding

FEWEST = 4  # snapshots that make a trend
FEWEST_BY_TIME = 6  # where nothing counts steps; few, and a container that is emptied at times looks like it
LEAST_STEPS = 6  # steps between the first and the last of them; without steps: new arrays
NEAR = 0.9  # share of the largest snapshot's bytes from which another one counts as equally full


class Group(msgspec.Struct, frozen=True):
    """Arrays of one path, shape, dtype and sharding.

    Attributes:
      path: the variable that leads to the arrays; None: no reference was found.
      global_bytes: bytes of all arrays of the group, without copies.
      device_bytes: bytes of all arrays of the group, on each device that holds them.
      shared: number of these arrays that use the memory of other arrays.
      replication: number of devices that hold the same part of an array.
      padding_bytes: bytes allocated for padding, on all devices together.
      all_bytes: bytes on all devices of the process together, without arrays that use the memory of others.
    """

    path: str | None
    count: int
    shape: tuple[int | str, ...] | None
    dtype: str | None
    global_bytes: int | None
    device_bytes: int | None
    sharding: Sharding | None
    replication: int | None
    padding_bytes: int | None
    committed: bool | None
    layout: str | None
    origin: Frame | None
    held: str | None = None
    shared: int = 0
    all_bytes: int | None = None

    @property
    def own_bytes(self) -> int | None:
        """Return ``device_bytes`` without the arrays in the memory of other arrays."""
        if self.device_bytes is None or not self.shared:
            return self.device_bytes
        return self.device_bytes * max(0, self.count - self.shared) // max(1, self.count)

    @property
    def memory_kind(self) -> str | None:
        return None if self.sharding is None else self.sharding.memory_kind


class Snapshot(msgspec.Struct, frozen=True):
    """The live arrays of one process at one time.

    Attributes:
      by_device: bytes on each device of the process. A buffer that several arrays share counts once.
      parts: number of further arrays that use the memory of these arrays and have no path.
      lengths, bounded: the lengths of containers, and which are bounded, as in ``ArraysSeen``.
    """

    process: Process
    why: str
    t_ns: int
    step: int | None
    count: int
    bytes: int | None
    by_device: dict[int, int]
    groups: list[Group]
    memory: list[DeviceMemory]
    cut: bool
    error: str | None
    site: Frame | None
    parts: int = 0
    lengths: dict[str, int] = {}
    bounded: list[str] = []

    @property
    def known_bytes(self) -> int:
        """Return ``bytes``, or where the devices of some arrays are unknown, what there is at least."""
        unknown = sum(g.global_bytes or 0 for g in self.groups if g.all_bytes is None)
        return sum(self.by_device.values()) + unknown

    @property
    def unnamed_share(self) -> float | None:
        """Return the share of the bytes without a path; None: there are no bytes, or a size is unknown."""
        sizes = [(g.path is None, g.global_bytes) for g in self.groups]
        if any(b is None for _, b in sizes):
            return None
        total = sum(b or 0 for _, b in sizes)
        return sum(b or 0 for lost, b in sizes if lost) / total if total else None


def snapshots(run: Run) -> list[Snapshot]:
    """Return the snapshots of all processes, in order of time."""
    found = [read(p, event) for p in run.processes.values() for event in p.snapshots]
    return sorted(found, key=lambda s: (s.t_ns, s.process.id))


def of_main(run: Run) -> list[Snapshot]:
    """Return the snapshots of the process that the user started."""
    main = run.main
    return [] if main is None else [read(main, event) for event in main.snapshots]


def of_failure(run: Run) -> Snapshot | None:
    """Return the latest snapshot of an allocation that failed in the process that the user started."""
    main = run.main
    failed = (
        None if main is None else next((e for e in reversed(main.snapshots) if e.error is not None), None)
    )
    return None if main is None or failed is None else read(main, failed)


def fullest(found: list[Snapshot]) -> Snapshot | None:
    """Return the snapshot with the most bytes, or one with nearly as many bytes and more named arrays. If
    several are equal, return the last.

    A snapshot that is taken while a call returns can have a few bytes more than the snapshots before and
    after it, and fewer names, because no variable refers to the results yet.
    """
    most = max((s.bytes or 0 for s in found), default=0)
    near = [s for s in found if (s.bytes or 0) >= NEAR * most]
    least = min((s.unnamed_share or 0.0 for s in near), default=0.0)
    named = [s for s in near if (s.unnamed_share or 0.0) <= least + 1 - NEAR]
    return max(named, key=lambda s: (s.bytes or 0, s.t_ns), default=None)


def read(process: Process, event: ArraysSeen) -> Snapshot:
    """Return the snapshot of one event."""
    addressable = sh.device_ids(event.addressable)
    own = None if addressable is None else set(addressable)
    by_device: dict[int, int] = dict.fromkeys(addressable or (), 0)
    groups = []
    total: int | None = 0
    for g in event.groups:
        group, devices = _group(g, event.shardings)
        if group.own_bytes is None or devices is None:
            groups.append(group)
            total = None
            continue
        here = [d for d in devices if own is None or d in own]
        groups.append(msgspec.structs.replace(group, all_bytes=group.own_bytes * len(here)))
        for d in here:
            by_device[d] = by_device.get(d, 0) + group.own_bytes
    for d, twice in event.overlap.items():
        if d in by_device:
            by_device[d] = max(0, by_device[d] - twice)
    if total is not None:
        total = sum(by_device.values())
    return Snapshot(
        process=process,
        why=event.why,
        t_ns=event.t_ns,
        step=event.step,
        count=event.count,
        bytes=total,
        by_device=by_device,
        groups=groups,
        memory=list(event.memory),
        cut=event.cut,
        error=event.error,
        site=event.site,
        parts=event.parts,
        lengths=event.lengths,
        bounded=event.bounded,
    )


class Sum(msgspec.Struct, frozen=True):
    """The arrays of a snapshot with one common property, for example the variable that leads to them.

    Attributes:
      name: the value of that property; None: arrays to which no variable leads.
      bytes: bytes on all devices of the process; None: unknown.
    """

    name: str | None
    groups: list[Group]

    @property
    def count(self) -> int:
        return sum(g.count for g in self.groups)

    @property
    def bytes(self) -> int | None:
        sizes = [g.all_bytes for g in self.groups]
        return None if None in sizes else sum(n or 0 for n in sizes)


def sums(s: Snapshot, name: Callable[[Group], str | None]) -> list[Sum]:
    """Return the groups of ``s`` by ``name``, the most bytes first."""
    found: dict[str | None, list[Group]] = {}
    for g in s.groups:
        found.setdefault(name(g), []).append(g)
    members = [Sum(key, groups) for key, groups in found.items()]
    return sorted(members, key=lambda m: (-(m.bytes or 0), m.name or ""))


def tree_of(g: Group) -> str | None:
    """Return the variable that leads to ``g``, with its attribute: what a user calls
    parameters or optimizer state.

    ``state.params['block0']['w']`` -> ``state.params``; ``opt_state[*].mu['w']`` -> ``opt_state``.
    """
    if g.path is None:
        return None
    steps = tokens(g.path)
    return "".join(steps[:2] if len(steps) > 1 and steps[1].startswith(".") else steps[:1]) or g.path


PARAMETERS, OPTIMIZER, BATCH, OTHER = "parameters", "optimizer state", "batch", "other"
_OF_OPTIMIZER = {"opt_state", "optstate", "mu", "nu", "momentum", "velocity", "optimizer_state", "trace"}
_OF_PARAMETERS = {"params", "parameters", "weights", "model", "variables", "net", "network", "kernel"}
_OF_BATCH = {"batch", "batches", "inputs", "targets", "labels", "images", "tokens"}


def kind_of(run: Run) -> Callable[[Group], str]:
    """Return a function that classifies a group: parameters, optimizer state, batch or other.

    The words in the path of the group decide. Arrays created by a line that copies to a device are a batch,
    too.
    """
    sent = {
        (e.site.file, e.site.line)
        for p in run.processes.values()
        for e in p.transfers.values()
        if e.direction == "host_to_device" and e.site is not None and e.count > 1
    }

    def kind(g: Group) -> str:
        words = {w.lower() for w in re.findall(r"\w+", g.path or "")}
        if words & _OF_OPTIMIZER:
            return OPTIMIZER
        if words & _OF_PARAMETERS:
            return PARAMETERS
        if words & {"opt", "optimizer", "optim"}:
            return OPTIMIZER
        made = g.origin is not None and (g.origin.file, g.origin.line) in sent
        return BATCH if made or words & _OF_BATCH else OTHER

    return kind


def _group(g: ArrayGroup, table: list[Sharding]) -> tuple[Group, tuple[int, ...] | None]:
    """Return the group and its devices."""
    sharding = table[g.sharding] if g.sharding is not None and 0 <= g.sharding < len(table) else None
    devices = None if sharding is None else sh.device_ids(sharding.devices)
    shape = None if g.shape is None else [d for d in g.shape if isinstance(d, int) and d >= 0]
    known = shape if shape is not None and g.shape is not None and len(shape) == len(g.shape) else None
    found = sh.layout(sharding, len(known)) if sharding is not None and known is not None else None
    device_bytes = g.device_bytes
    padding = None
    if found is not None and known is not None and g.bytes is not None:
        elements = math.prod(known)
        if device_bytes is None:
            shard = math.prod(sh.shard_shape(known, found.parts))
            device_bytes = g.bytes // elements * shard if elements else 0
        copies = found.replication * found.unreduced
        padding = max(0, device_bytes * len(found.devices) - g.bytes * copies)
    return (
        Group(
            path=g.path,
            count=g.count,
            shape=g.shape,
            dtype=g.dtype,
            global_bytes=g.bytes,
            device_bytes=device_bytes,
            sharding=sharding,
            replication=None if found is None else found.replication,
            padding_bytes=padding,
            committed=g.committed,
            layout=g.layout,
            origin=g.origin,
            held=g.held,
            shared=g.shared,
        ),
        devices,
    )


Seen = tuple[float, int, int]  # position of a snapshot, number of arrays, bytes


class Growth(msgspec.Struct, frozen=True):
    """The arrays of one container, or one array, that became more or larger in every snapshot.

    Attributes:
      group: the group in the last snapshot.
      path: the path of the container, ``history[*]``, or of the array; None: no reference was found.
      seen: (position, count, bytes) of each snapshot. The position is the step; without steps the seconds
        since the run began.
      in_steps: whether the positions are steps.
      held: the objects that refer to the arrays, if the arrays have no path and these objects were searched
        for.
    """

    group: Group
    path: str | None
    process: Process
    seen: list[Seen]
    in_steps: bool
    held: str | None = None

    @property
    def more_arrays(self) -> float:
        """Return the new arrays per step or second; 0: one array that becomes longer."""
        (first, had, _), (last, has, _) = self.seen[0], self.seen[-1]
        return (has - had) / (last - first)

    @property
    def more_bytes(self) -> float:
        """Return the new bytes per step or second."""
        (first, _, had), (last, _, has) = self.seen[0], self.seen[-1]
        return (has - had) / (last - first)


def growing(run: Run) -> list[Growth]:
    """Return the arrays that grew from each snapshot to the next, those with the most bytes first.

    They must have grown in at least FEWEST snapshots at different steps (FEWEST_BY_TIME at different times
    where nothing counts steps), the last of which is in the second half of the run. The groups of one
    container are added up, because its arrays may have changing shapes. Containers with a maximum length are
    left out.
    """
    found = []
    for process in run.processes.values():
        recorded = [read(process, e) for e in process.snapshots]
        in_steps = any(s.step is not None for s in recorded)
        snapshots = _at_steps(recorded) if in_steps else _at_times(run, recorded)
        fewest = FEWEST if in_steps else FEWEST_BY_TIME
        if len(snapshots) < fewest:
            continue
        gaining = _gaining(snapshots[0][1], snapshots[-1][1])
        series, latest = _series(snapshots, gaining, from_none=not in_steps)
        held = {_holder(g, gaining): g.held for s in recorded for g in s.groups if g.held is not None}
        for key, seen in series.items():
            tail = _rising(seen)
            # A group that a loop has released at its end was growing until then.
            ended = 2 * seen[-1][0] < snapshots[-1][0]
            if ended or len(tail) < fewest or not _steady(tail, in_steps):
                continue
            path = key if isinstance(key, str) else None
            if path is None or not _fills_up(path, tail, snapshots):
                found.append(Growth(latest[key], path, process, tail, in_steps, held.get(key)))
    return sorted(found, key=lambda g: (-g.more_bytes, -g.more_arrays, g.path or ""))


def _series(
    snapshots: list[tuple[float, Snapshot]], gaining: set[str], *, from_none: bool
) -> tuple[dict[object, list[Seen]], dict[object, Group]]:
    """Return for each container its arrays in each snapshot, and its group in the last one.

    ``from_none``: a container that is not in the first snapshot begins with 0 arrays in the one before it is
    seen.
    """
    series: dict[object, list[Seen]] = {}
    latest: dict[object, Group] = {}
    before: float | None = None
    for at, snapshot in snapshots:
        sums: dict[object, tuple[int, int]] = {}
        for g in snapshot.groups:
            key = _holder(g, gaining)
            n, size = sums.get(key, (0, 0))
            sums[key] = n + g.count, size + (g.global_bytes or 0)
            if latest.get(key) is None or snapshot is snapshots[-1][1]:
                latest[key] = g
        for key, (n, size) in sums.items():
            if key not in series:
                series[key] = [(before, 0, 0)] if from_none and before is not None else []
            series[key].append((at, n, size))
        before = at
    return series, latest


def _gaining(first: Snapshot, last: Snapshot) -> set[str]:
    """Return the paths of containers that have more keys in the ``last`` snapshot than in the ``first``."""
    keys: tuple[dict[str, set[str]], ...] = ({}, {})
    for snapshot, of in zip((first, last), keys, strict=True):
        for g in snapshot.groups:
            steps = tokens(g.path or "")
            for n, step in enumerate(steps[1:], 1):
                if step.startswith("["):
                    of.setdefault("".join(steps[:n]), set()).add(step)
    return {path for path, inside in keys[1].items() if len(inside) > len(keys[0].get(path, ()))}


def _at_steps(recorded: list[Snapshot]) -> list[tuple[float, Snapshot]]:
    """Return the last snapshot of each step, with the step."""
    by_step = {s.step: s for s in recorded if s.step is not None and s.why != "exit"}
    return [(step, by_step[step]) for step in sorted(by_step)]


def _at_times(run: Run, recorded: list[Snapshot]) -> list[tuple[float, Snapshot]]:
    """Return the snapshots before the end, with the seconds since the run began."""
    found = ((run.seconds_at(s.t_ns), s) for s in recorded if s.why != "exit")
    return [(at, s) for at, s in found if at is not None]


def _holder(g: Group, gaining: set[str]) -> object:
    """Identify the leaking container, or the array: by path, the outermost container that has indices or is
    one of ``gaining``; without a path by the line that created the arrays."""
    if g.path is None:
        return ("unnamed", g.origin, g.dtype)
    steps = tokens(g.path)
    for n, step in enumerate(steps):
        above = "".join(steps[:n])
        if step == "[*]" or (step.startswith("[") and above in gaining):
            return above + "[*]"
    return re.sub(r"\d+", "*", g.path)


def _fills_up(path: str, seen: list[Seen], snapshots: list[tuple[float, Snapshot]]) -> bool:
    """Return whether the container at ``path`` has a bound, or as many items, all the time, as arrays go
    in.
    """
    container = path.removesuffix("[*]").removesuffix(".<cache>")
    filled = [at for at, n, _ in seen if n]
    during = [s for at, s in snapshots if filled[0] <= at <= filled[-1]]
    if any(container in s.bounded for s in during):
        return True
    lengths = {s.lengths.get(container) for s in during}
    length = lengths.pop()
    return not lengths and length is not None and seen[-1][1] <= length


def _rising(seen: list[Seen]) -> list[Seen]:
    """Return the longest end of ``seen`` in which the count grew every time, or the bytes of one array."""
    start = len(seen) - 1
    while start > 0 and seen[start - 1][1] < seen[start][1]:
        start -= 1
    if start == len(seen) - 1:
        while start > 0 and seen[start - 1][1] == seen[start][1] == 1 and seen[start - 1][2] < seen[start][2]:
            start -= 1
    return seen[start:]


def _steady(seen: list[Seen], in_steps: bool) -> bool:
    """Return whether it grew over enough steps or arrays, in the second half at least half as fast as in the
    first."""
    (first, had, _), (last, has, _) = seen[0], seen[-1]
    if (last - first if in_steps else has - had or LEAST_STEPS) < LEAST_STEPS:
        return False
    middle = len(seen) // 2
    figure = 1 if seen[0][1] < seen[-1][1] else 2

    def rate(a: Seen, b: Seen) -> float:
        return (b[figure] - a[figure]) / (b[0] - a[0])

    return rate(seen[middle], seen[-1]) >= 0.5 * rate(seen[0], seen[middle])
