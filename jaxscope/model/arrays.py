"""Read the snapshots of a run (a snapshot is a list of all live ``jax.Array`` objects of a process).

The functions compute the bytes of the arrays on each device and by variable, and find the containers that get
more arrays, and the arrays that become larger, from step to step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.paths import tokens
from jaxscope.analysis.sums import known_sum
from jaxscope.model.records import Process
from jaxscope.model.run import Run
from jaxscope.schema.arrays import (
    CLOSURE,
    CONTAINER,
    DICT,
    FRAME,
    OBJECT,
    TRACE,
    ArrayGroup,
    DeviceMemory,
    Holder,
)
from jaxscope.schema.events import ArraysSeen
from jaxscope.schema.keys import Frame, Sharding, table_entry
from jaxscope.schema.messages import Words, message
from jaxscope.schema.transfers import TO_DEVICE

FEWEST = 4  # least number of successive snapshots over which arrays must have grown
# The least number of snapshots if steps are not counted. With few snapshots, a container that is emptied from
# time to time may seem to grow all the time.
FEWEST_BY_TIME = 6
LEAST_STEPS = 6  # least number of steps over which arrays grow; if steps are not counted, of new arrays
NEAR = 0.9  # a snapshot with this share of the bytes of the largest snapshot counts as equally large


class Group(msgspec.Struct, frozen=True):
    """Live arrays that have the same path, shape, dtype and sharding. If there are very many groups, the
    smallest groups are merged. A field is None if it is unknown or differs between the arrays.

    Attributes:
      path: the variable that leads to the arrays, ``state.params[*]``; None: no variable was found.
      count: number of arrays.
      shape, dtype: shape and dtype of each array.
      global_bytes: sum of the global sizes of the arrays. Copies on several devices count once.
      device_bytes: bytes that all arrays of the group together take on each device that holds them.
      sharding: the sharding of the arrays.
      replication: number of devices that hold the same part of an array.
      padding_bytes: bytes allocated for padding, on all devices together.
      committed: whether the arrays are committed to their devices.
      layout: the order of the axes in memory.
      origin: the user's line that created the arrays.
      held: in runs of older versions, the object that refers to the arrays, in words.
      holder: the object that refers to the arrays. jaxscope searches for it only if no variable leads to the
        arrays and there are more and more of them.
      shared: number of these arrays that use the memory of other arrays in the snapshot.
      all_bytes: bytes on all devices of the process together, without the arrays in ``shared``.
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
    holder: Holder | None = None
    shared: int = 0
    all_bytes: int | None = None

    @property
    def own_bytes(self) -> int | None:
        """Return the part of ``device_bytes`` that belongs to arrays with memory of their own, which are not
        in ``shared``. All arrays of the group are taken as equally large. None if ``device_bytes`` is
        unknown."""
        if self.device_bytes is None or not self.shared:
            return self.device_bytes
        return self.device_bytes * max(0, self.count - self.shared) // max(1, self.count)

    @property
    def memory_kind(self) -> str | None:
        """Return the kind of memory that the arrays are in (``device``, ``pinned_host``); None: unknown."""
        return None if self.sharding is None else self.sharding.memory_kind


class Snapshot(msgspec.Struct, frozen=True):
    """All live arrays of one process at one moment, as the event ``ArraysSeen`` recorded them.

    Attributes:
      why: why the snapshot was taken: step (a training step ended), growth (there are more arrays), asked (by
        the user), exit, exhausted (memory ran out), or, only if steps are not counted, miss (a call missed
        JAX's fast path) or time (some time had passed).
      t_ns: when it was taken, in nanoseconds since the epoch.
      step: the training step that ended last, 0 if none has; None: steps are not counted.
      count: number of live arrays in ``groups``.
      bytes: bytes on all devices of the process together; None: the devices or sizes of some arrays
        are unknown.
      by_device: bytes of the arrays of known size on each device of the process, by id. A buffer that several
        arrays share counts once.
      groups: the arrays, grouped by path, shape, dtype and sharding.
      memory: the figures of each device's allocator: bytes in use, peak, limit.
      cut: whether the search for variables that lead to the arrays stopped at a limit.
      error, site: if memory ran out, the error message and the user's line (if known); else None.
      parts: number of further live arrays, in no group: no variable leads to them, and they use the memory of
        arrays in the groups.
      lengths: number of items of the largest containers that lead to arrays, by path; for the paths in
        ``bounded``, the maximum length.
      bounded: the paths of containers that have a maximum length.
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
        """Return the bytes of the arrays on all devices of the process together. Arrays whose devices or
        bytes on a device are unknown count with their global size, without copies (0 if that is unknown,
        too)."""
        unknown = sum(g.global_bytes or 0 for g in self.groups if g.all_bytes is None)
        return sum(self.by_device.values()) + unknown

    @property
    def unnamed_share(self) -> float | None:
        """Return the fraction of the bytes that belongs to arrays without a path (no variable leads to
        them). Copies of an array on several devices count once. None if there are no bytes, or if a size
        is unknown."""
        sizes = [(g.path is None, g.global_bytes) for g in self.groups]
        if any(b is None for _, b in sizes):
            return None
        total = sum(b or 0 for _, b in sizes)
        return sum(b or 0 for lost, b in sizes if lost) / total if total else None


def snapshots(run: Run) -> list[Snapshot]:
    """Return the snapshots (lists of live arrays) of all processes of the run, in order of time."""
    found = [read(p, event) for p in run.processes.values() for event in p.snapshots]
    return sorted(found, key=lambda s: (s.t_ns, s.process.id))


def of_main(run: Run) -> list[Snapshot]:
    """Return the snapshots (lists of live arrays) of the main process (``Run.main``), in the order in which
    they were recorded. Empty if no process was recorded."""
    main = run.main
    return [] if main is None else [read(main, event) for event in main.snapshots]


def of_failure(run: Run) -> Snapshot | None:
    """Return the latest snapshot (list of live arrays) of the main process (``Run.main``) that was taken
    because memory ran out. None if there is none."""
    main = run.main
    if main is None:
        return None
    return next((read(main, e) for e in reversed(main.snapshots) if e.error is not None), None)


def fullest(candidates: list[Snapshot]) -> Snapshot | None:
    """Return the snapshot (list of live arrays) of ``candidates`` that shows best what uses the memory. None
    if ``candidates`` is empty.

    Snapshots with less than the fraction NEAR of the most bytes are left out, then those whose
    ``unnamed_share`` is more than 0.1 above the lowest. Of the rest, the snapshot with the most bytes is
    returned; of several, the latest. Unknown numbers count as 0."""
    # While a call returns, no variable refers to its results yet.
    most = max((s.bytes or 0 for s in candidates), default=0)
    near = [s for s in candidates if (s.bytes or 0) >= NEAR * most]
    least = min((s.unnamed_share or 0.0 for s in near), default=0.0)
    named = [s for s in near if (s.unnamed_share or 0.0) <= least + 1 - NEAR]
    return max(named, key=lambda s: (s.bytes or 0, s.t_ns), default=None)


def read(process: Process, event: ArraysSeen) -> Snapshot:
    """Convert ``event``, which ``process`` recorded, into a Snapshot (list of all live arrays), with the
    bytes on each device. Arrays that JAX could not allocate are left out."""
    addressable = sh.device_ids(event.addressable)
    own = None if addressable is None else set(addressable)
    by_device: dict[int, int] = dict.fromkeys(addressable or (), 0)
    peaks = {m.device: m.peak for m in event.memory if m.peak is not None}
    groups = []
    count, unknown = event.count, False
    for g in event.groups:
        group, devices = _group(g, event.shardings)
        if _failed(group, devices or (), peaks):
            count -= group.count
            continue
        if group.own_bytes is None or devices is None:
            groups.append(group)
            unknown = True
            continue
        here = [d for d in devices if own is None or d in own]
        groups.append(msgspec.structs.replace(group, all_bytes=group.own_bytes * len(here)))
        for d in here:
            by_device[d] = by_device.get(d, 0) + group.own_bytes
    for d, twice in event.overlap.items():
        if d in by_device:
            by_device[d] = max(0, by_device[d] - twice)
    return Snapshot(
        process=process,
        why=event.why,
        t_ns=event.t_ns,
        step=event.step,
        count=count,
        bytes=None if unknown else sum(by_device.values()),
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


def _failed(group: Group, devices: Collection[int], peaks: Mapping[int, int]) -> bool:
    """Return whether JAX could not allocate the arrays of ``group``: one array alone has more bytes than one
    of its ``devices`` ever had in use. ``peaks`` is {device id: most bytes that were ever in use}. False for
    arrays in another memory, such as ``pinned_host``."""
    # A GPU allocates after the call has returned. So an array whose allocation failed is live and has its
    # full size until its variable is deleted (JAX 0.11, H200).
    if group.device_bytes is None or group.memory_kind not in (None, "device"):
        return False
    return any(group.device_bytes > peaks[d] * max(1, group.count) for d in devices if d in peaks)


class Sum(msgspec.Struct, frozen=True):
    """Groups of a snapshot (list of all live arrays) that have something in common, such as the variable that
    leads to their arrays.

    Attributes:
      name: the common property of the groups, such as the variable; None: no variable leads to the arrays.
      groups: the groups of arrays.
      bytes: bytes on all devices of the process together; None: unknown.
    """

    name: str | None
    groups: list[Group]

    @property
    def count(self) -> int:
        return sum(g.count for g in self.groups)

    @property
    def bytes(self) -> int | None:
        return known_sum(g.all_bytes for g in self.groups)


def sums(s: Snapshot, name: Callable[[Group], str | None]) -> list[Sum]:
    """Return a Sum for each value of ``name(group)`` over the groups of the snapshot ``s``, the most bytes
    first. Unknown bytes come last. With ``tree_of`` as ``name``, arrays are summed by the variable that leads
    to them."""
    found = grouped((name(g), g) for g in s.groups)
    members = [Sum(key, groups) for key, groups in found.items()]
    return sorted(members, key=lambda m: (-(m.bytes or 0), m.name or ""))


def tree_of(g: Group) -> str | None:
    """Return the variable at the beginning of the path of ``g``, together with the attribute that directly
    follows it, if one does. None if no variable leads to the arrays.

    ``state.params['block0']['w']`` -> ``state.params``; ``opt_state[*].mu['w']`` -> ``opt_state``"""
    if g.path is None:
        return None
    steps = tokens(g.path)
    return "".join(steps[:2] if len(steps) > 1 and steps[1].startswith(".") else steps[:1]) or g.path


PARAMETERS, OPTIMIZER, BATCH, OTHER = "parameters", "optimizer state", "batch", "other"
_OF_OPTIMIZER = {"opt_state", "optstate", "mu", "nu", "momentum", "velocity", "optimizer_state", "trace"}
_OF_PARAMETERS = {"params", "parameters", "weights", "model", "variables", "net", "network", "kernel"}
_OF_BATCH = {"batch", "batches", "inputs", "targets", "labels", "images", "tokens"}


def kind_of(run: Run) -> Callable[[Group], str]:
    """Return a function that tells what a group of arrays is used for: PARAMETERS, OPTIMIZER, BATCH or OTHER.

    The function looks for words such as ``params``, ``opt_state`` or ``batch`` in the path of the group.
    Arrays without such a word also count as BATCH if the line that created them copied arrays to a device
    several times."""
    sent = {
        e.site.place
        for p in run.processes.values()
        for e in p.transfers.values()
        if e.direction == TO_DEVICE and e.site is not None and e.count > 1
    }

    def kind(g: Group) -> str:
        words = {w.lower() for w in re.findall(r"\w+", g.path or "")}
        if words & _OF_OPTIMIZER:
            return OPTIMIZER
        if words & _OF_PARAMETERS:
            return PARAMETERS
        if words & {"opt", "optimizer", "optim"}:
            return OPTIMIZER
        made = g.origin is not None and g.origin.place in sent
        return BATCH if made or words & _OF_BATCH else OTHER

    return kind


def _group(g: ArrayGroup, table: list[Sharding]) -> tuple[Group, tuple[int, ...] | None]:
    """Convert ``g``, a recorded group of arrays, into (Group, ids of its devices or None if unknown).
    ``g.sharding`` is an index into ``table``, the shardings of the snapshot."""
    sharding = table_entry(table, g.sharding)
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
            # Older versions recorded the holder in words: ``a jit cache of JAX (...)``
            holder=g.holder or (Holder(TRACE) if "jit cache" in (g.held or "") else None),
            shared=g.shared,
        ),
        devices,
    )


def held_by(g: Group | Growth) -> Words | None:
    """Return the object that refers to the arrays ``g``, in words for a message: ``a list of 40``. None if
    the object is unknown."""
    h = g.holder
    if h is None or g.held is not None:
        return g.held
    if h.kind == CONTAINER:
        return message("held-by-container", kind=h.name, count=h.count)
    if h.kind == DICT:
        return message("held-by-dict", kind=h.name, under=h.key and message("held-under-key", key=h.key))
    if h.kind == OBJECT:
        return message("held-by-object", kind=h.name)
    if h.kind == FRAME:
        return message("held-by-frame", function=h.name)
    if h.kind == TRACE:
        return message("held-by-trace", kind=h.name)
    return message("held-by-closure") if h.kind == CLOSURE else message("held-outside-python")


Seen = tuple[float, int, int]  # step or seconds of a snapshot, number of arrays, bytes


class Growth(msgspec.Struct, frozen=True):
    """A container that has more arrays in each snapshot (list of live arrays) than in the previous one, or
    one array that becomes larger.

    Attributes:
      group: the array, or one group of the arrays in the container; from the last snapshot, if it is there.
      path: the path of the container, ``history[*]``, or of the array; None: no variable leads to the arrays.
      seen: (position, number of arrays, bytes) in each snapshot of the latest growth without a pause. The
        position is the step; if steps are not counted, the seconds since the run began. Copies of an array on
        several devices count once in the bytes.
      in_steps: whether the positions are steps.
      held, holder: the object that refers to the arrays, as in ``Group``; None: unknown.
    """

    group: Group
    path: str | None
    process: Process
    seen: list[Seen]
    in_steps: bool
    held: str | None = None
    holder: Holder | None = None

    @property
    def more_arrays(self) -> float:
        """Return how many arrays the container gets per step (per second if steps are not counted); 0 for a
        single array that becomes larger."""
        (first, had, _), (last, has, _) = self.seen[0], self.seen[-1]
        return (has - had) / (last - first)

    @property
    def more_bytes(self) -> float:
        """Return how many bytes are added per step (per second if steps are not counted). Copies of an array
        on several devices count once."""
        (first, _, had), (last, _, has) = self.seen[0], self.seen[-1]
        return (has - had) / (last - first)


def growing(run: Run) -> list[Growth]:
    """Return the containers and arrays that grew from each snapshot (list of live arrays) to the next, in all
    processes: likely memory leaks. Those that gain most bytes per step (or second) come first.

    A container or array must have grown steadily, and still in the second half of the run. Containers with a
    maximum length, and lists that are only being filled, are left out."""
    found = []
    for process in run.processes.values():
        recorded = [read(process, e) for e in process.snapshots]
        in_steps = any(s.step is not None for s in recorded)
        snapshots = _at_steps(recorded) if in_steps else _at_times(run, recorded)
        fewest = FEWEST if in_steps else FEWEST_BY_TIME
        if len(snapshots) < fewest:
            continue
        gaining = _gaining(snapshots[0][1], snapshots[-1][1])
        # All arrays of a container are added up, because they may have different shapes.
        series, latest = _series(snapshots, gaining, from_none=not in_steps)
        held = {_key(g, gaining): g for s in recorded for g in s.groups if g.held or g.holder}
        for key, seen in series.items():
            tail = _rising(seen)
            # A group that a loop has released at its end was growing until then.
            ended = 2 * seen[-1][0] < snapshots[-1][0]
            if ended or len(tail) < fewest or not _steady(tail, in_steps):
                continue
            path = key if isinstance(key, str) else None
            if path is None or not _fills_up(path, tail, snapshots):
                by = held.get(key, latest[key])
                found.append(Growth(latest[key], path, process, tail, in_steps, by.held, by.holder))
    return sorted(found, key=lambda g: (-g.more_bytes, -g.more_arrays, g.path or ""))


def _series(
    snapshots: list[tuple[float, Snapshot]], gaining: set[str], *, from_none: bool
) -> tuple[dict[object, list[Seen]], dict[object, Group]]:
    """Return two dicts by container of arrays, with keys made by ``_key``: {key: [(position, number of
    arrays, bytes) in each snapshot that has the container]} and {key: one group of its arrays, from the last
    snapshot if that has the container}.

    Args:
      snapshots: (position, snapshot) in order of time. The position is the step, or the time in seconds if
        steps are not counted.
      gaining: the paths of containers that have more items in the last snapshot than in the first.
      from_none: whether to add an entry with 0 arrays for the last snapshot before the container appeared.
    """
    series: dict[object, list[Seen]] = {}
    latest: dict[object, Group] = {}
    before: float | None = None
    for at, snapshot in snapshots:
        sums: dict[object, tuple[int, int]] = {}
        for g in snapshot.groups:
            key = _key(g, gaining)
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
    """Return the paths of the containers that have more keys or indices in the snapshot ``last`` than in
    ``first``. ``_key`` uses them to tell which one of nested containers grows."""
    keys: tuple[dict[str, set[str]], ...] = ({}, {})
    for snapshot, found in zip((first, last), keys, strict=True):
        for g in snapshot.groups:
            steps = tokens(g.path or "")
            for n, step in enumerate(steps[1:], 1):
                if step.startswith("["):
                    found.setdefault("".join(steps[:n]), set()).add(step)
    return {path for path, inside in keys[1].items() if len(inside) > len(keys[0].get(path, ()))}


def _at_steps(recorded: list[Snapshot]) -> list[tuple[float, Snapshot]]:
    """Return (step, last snapshot of that step) in order of the steps. Snapshots without a step, and the one
    at the exit of the program, are left out."""
    # The snapshot at the exit may follow the last one without growth in between.
    by_step = {s.step: s for s in recorded if s.step is not None and s.why != "exit"}
    return [(step, by_step[step]) for step in sorted(by_step)]


def _at_times(run: Run, recorded: list[Snapshot]) -> list[tuple[float, Snapshot]]:
    """Return (seconds since the run began, snapshot) in order of time. The snapshot at the exit of the
    program is left out."""
    found = ((run.seconds_at(s.t_ns), s) for s in recorded if s.why != "exit")
    return [(at, s) for at, s in found if at is not None]


def _key(g: Group, gaining: set[str]) -> object:
    """Return a key for the container of the arrays ``g``. The arrays of one container have the same key in
    all snapshots.

    The key is the path of the outermost container that is in ``gaining`` or has ``[*]`` instead of an index,
    followed by ``[*]``: ``history[*].params`` gives ``history[*]``. Without such a container, the key is the
    path with ``*`` for each number, and without a path a tuple."""
    if g.path is None:
        return ("unnamed", g.origin, g.dtype)
    steps = tokens(g.path)
    for n, step in enumerate(steps):
        above = "".join(steps[:n])
        if step == "[*]" or (step.startswith("[") and above in gaining):
            return above + "[*]"
    return re.sub(r"\d+", "*", g.path)


def _fills_up(path: str, sizes: list[Seen], snapshots: list[tuple[float, Snapshot]]) -> bool:
    """Return whether the container at ``path`` will stop growing, so that it is no leak: it has a maximum
    length, or it is a list of constant length that is filled with arrays.

    ``sizes`` has (step or seconds, number of arrays, bytes) for each snapshot with the container;
    ``snapshots`` has (step or seconds, snapshot)."""
    container = path.removesuffix("[*]").removesuffix(".<cache>")
    filled = [at for at, n, _ in sizes if n]
    during = [s for at, s in snapshots if filled and filled[0] <= at <= filled[-1]]
    if not during:
        return False
    if any(container in s.bounded for s in during):
        return True
    lengths = {s.lengths.get(container) for s in during}
    length = lengths.pop()
    return not lengths and length is not None and sizes[-1][1] <= length


def _rising(sizes: list[Seen]) -> list[Seen]:
    """Return the last entries of ``sizes``, as many as possible, of which each has more arrays than the entry
    before. If the last entry has no more arrays than the entry before, return the last entries in which a
    single array gets more and more bytes. At least the last entry is returned. An entry is (step or seconds,
    number of arrays, bytes)."""
    start = len(sizes) - 1
    while start > 0 and sizes[start - 1][1] < sizes[start][1]:
        start -= 1
    if start == len(sizes) - 1:
        while (
            start > 0
            and sizes[start - 1][1] == sizes[start][1] == 1
            and sizes[start - 1][2] < sizes[start][2]
        ):
            start -= 1
    return sizes[start:]


def _steady(sizes: list[Seen], in_steps: bool) -> bool:
    """Return whether a container grew for long enough, and did not slow down by more than half: in the second
    half of the snapshots, it grew at least half as fast as in the first half.

    It grew in its number of arrays, or, if this stayed the same, in bytes. With ``in_steps``, it must have
    grown for at least LEAST_STEPS steps, without, by at least LEAST_STEPS arrays; there is no minimum if only
    the bytes grew. ``sizes`` has (position, number of arrays, bytes) for each snapshot of the time in which
    it grew. A position is a step if ``in_steps``, else a time in seconds."""
    (first, had, _), (last, has, _) = sizes[0], sizes[-1]
    if (last - first if in_steps else has - had or LEAST_STEPS) < LEAST_STEPS:
        return False
    middle = len(sizes) // 2
    figure = 1 if sizes[0][1] < sizes[-1][1] else 2

    def rate(a: Seen, b: Seen) -> float:
        return (b[figure] - a[figure]) / (b[0] - a[0])

    return rate(sizes[middle], sizes[-1]) >= 0.5 * rate(sizes[0], sizes[middle])
