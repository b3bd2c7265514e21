"""Take one snapshot of the live arrays: their shapes and shardings, and the variables that lead to them.

Only metadata is read: taking a snapshot waits for no device and fetches no buffer. Only numbers and texts are
kept.
"""

from __future__ import annotations

import collections
import gc
import re
import threading
import time
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any, NamedTuple

import msgspec

from jaxscope import jax_internals
from jaxscope.capture import frames, shield
from jaxscope.capture.calls import signature
from jaxscope.capture.calls.shardings import Shardings
from jaxscope.capture.live_arrays import (
    allocation_sites,
    host_memory,
    referrers,
    shared_buffers,
    variable_paths,
)
from jaxscope.jax_internals.devices import device_ranges
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory, Holder
from jaxscope.schema.events import ArraysSeen
from jaxscope.schema.keys import Frame

MAX_GROUPS = 512
MAX_SUSPECTS = 8

# Identifies arrays without a name in several snapshots, by their shape, dtype and the line that created them.
# An array has a name if a variable leads to it.
UnnamedKey = tuple[Any, ...]
_STEPS = re.compile(r"\[[^\[\]]*\]|\.?[^.\[]+")  # the parts of a path: state, .params, ['a']


class _Kind(msgspec.Struct, eq=False):
    """The properties that a group of live arrays has in common.

    Attributes:
      bytes: the size of one array over all devices, replicas counted once; None: unknown.
      device_bytes: the size of one array on each device that has a shard of it, with padding; None: unknown.
      sharding: the position of the sharding in the snapshot's table of shardings; None: the array has none.
      layout: the order of the dimensions in memory, as text; None: unknown.
      committed: whether the arrays are committed to their devices; None: unknown.
    """

    shape: tuple[int | str, ...] | None
    dtype: str | None
    bytes: int | None
    device_bytes: int | None
    sharding: int | None
    layout: str | None
    committed: bool | None


class Look:
    """One snapshot of the live arrays of this process. The constructor only finds and counts the arrays
    (``count``), and keeps them alive. ``take`` then reads their properties, finds the variables that lead to
    them, and releases them."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._began = time.thread_time_ns()
        self._collecting = 0  # ns
        self._live = [a for client in jax_internals.clients() for a in client.live_arrays()]
        self.count = len(self._live)

    @property
    def seconds(self) -> float:
        """The CPU time that this thread has spent since the snapshot began, in seconds, without the garbage
        collections during ``take``."""
        # CPU time does not grow while other processes occupy the cores. Garbage collections do not count,
        # because the program would have started them itself a little later.
        return (time.thread_time_ns() - self._began - self._collecting) / 1e9

    def _collection(self, phase: str, _: dict[str, int]) -> None:
        """Measure the CPU time of a garbage collection in the thread of this snapshot. Python calls this
        (``gc.callbacks``) with the ``phase`` ``start`` or ``stop``."""
        if threading.get_ident() == self._thread:
            now = time.thread_time_ns()
            self._collecting += -now if phase == "start" else now

    def take(
        self,
        frame: FrameType | None,
        why: str,
        step: int | None,
        trace: Any = None,
        suspects: Collection[UnnamedKey] = (),
        **more: Any,
    ) -> ArraysSeen:
        """Return the snapshot as an event ``ArraysSeen`` (an entry of the log). Call this only once.

        Args:
          frame: the innermost frame of this thread whose variables are searched for the arrays; None: no
            frame of this thread is searched. The frames of its callers and of other threads, and modules, are
            searched too.
          why: the reason for the snapshot, one of those in ``capture.sampler``, such as ``step``.
          step: the training step that ended last; 0: none yet; None: steps are not counted.
          trace: a traceback whose frames are searched too; None: there is none.
          suspects: (shape, dtype, origin) of arrays that may be a leak because no variable leads to them, as
            from ``unnamed_key``. The objects that refer to these arrays are searched, which is slow.
          more: further fields of the event.
        """
        gc.callbacks.append(self._collection)
        try:
            return self._take(frame, why, step, trace, suspects, **more)
        finally:
            if self._collection in gc.callbacks:  # the program may have removed all callbacks
                gc.callbacks.remove(self._collection)

    def _take(
        self,
        frame: FrameType | None,
        why: str,
        step: int | None,
        trace: Any,
        suspects: Collection[UnnamedKey],
        **more: Any,
    ) -> ArraysSeen:
        """Do what ``take`` does, with the same arguments, but do not measure the garbage collections
        meanwhile."""
        live, self._live = self._live, []
        kinds = _Kinds()
        kinds.add(live)
        del live
        named = variable_paths.VariablePaths(kinds.array_ids(), kinds.skip())
        shield.attempt("array_names", named.search, _stacks(frame, trace))
        shield.attempt("shared_memory", kinds.find_shared, named)
        groups = kinds.groups(named, suspects)
        return ArraysSeen(
            why=why,
            step=step,
            count=sum(g.count for g in groups),
            shardings=kinds.shardings.table,
            groups=groups,
            parts=kinds.parts,
            overlap=kinds.shared.overlap,
            lengths=kinds.lengths,
            bounded=kinds.bounded,
            addressable=shield.attempt("addressable", _addressable),
            memory=shield.attempt("device_memory", _memory) or [],
            host_limit=shield.attempt("host_memory", host_memory.limit) if _on_cpu() else None,
            cut=named.cut,
            cost_seconds=self.seconds,
            **more,
        )


def unnamed_key(kind: _Kind | ArrayGroup, origin: Frame | None) -> UnnamedKey:
    """Return (shape, dtype, ``origin``), the key by which arrays without a path from a variable are
    recognized in several snapshots. ``kind`` has the shape and the dtype. ``origin`` is the line that created
    the arrays; None: unknown."""
    return kind.shape, kind.dtype, origin


class _Batch:
    """Live arrays that have equal properties and were created by the same lines of code (equal Python
    stacks).

    Attributes:
      arrays: the ``id()`` of each array.
      kind: the properties.
      origin: the user's line that created the arrays; None: unknown.
      devices: the ids of this process's devices that hold the arrays.
    """

    __slots__ = ("arrays", "devices", "kind", "origin")

    def __init__(self, kind: _Kind, origin: Frame | None, devices: tuple[int, ...]) -> None:
        self.arrays: list[int] = []
        self.kind = kind
        self.origin = origin
        self.devices = devices


class _Kinds:
    """Groups the live arrays by their properties. The arrays are kept alive until ``groups`` is called.

    Attributes:
      shared: which of the arrays share memory.
      parts: the number of arrays to which no variable leads and whose memory is counted with other arrays.
        These arrays are in no group.
      lengths, bounded: the result of ``VariablePaths.lengths`` for the arrays: the lengths of the containers
        that hold them.
    """

    def __init__(self) -> None:
        self.shardings = Shardings()
        self.shared = shared_buffers.SharedBuffers()
        # Mostly shards that JAX makes, as in ``addressable_shards`` or ``np.asarray``, and keeps alive in C++
        # (JAX 0.10: up to two per device after one ``np.asarray``; 0.12: one).
        self.parts = 0
        self.lengths: dict[str, int] = {}
        self.bounded: list[str] = []
        self._sharding_index: dict[Any, int | None] = {}
        self._batches: dict[Any, _Batch] = {}
        self._equal: dict[tuple[Any, ...], _Kind] = {}  # one _Kind for equal properties of different avals
        self._lines: dict[Any, Frame | None] = {}
        self._frames: dict[Frame | None, Frame | None] = {}
        self._arrays: list[Any] = []

    def add(self, live: list[Any]) -> None:
        """Add each of the arrays ``live`` to the batch of arrays with its properties, and keep it alive.
        Arrays that were deleted meanwhile are left out."""
        batches, grouping_key, keep = self._batches, jax_internals.grouping_key, self._arrays.append
        for array in live:
            try:
                sharding, sharding_key, committed, stack, layout = grouping_key(array)
                # While an array is alive, no other aval can have the id of its aval.
                key = (id(array.aval), sharding_key, committed, stack, layout)
                batch = batches.get(key)
                if batch is None:
                    batch = batches[key] = self._new_batch(array, sharding, key)
            except RuntimeError:  # another thread has donated the array meanwhile
                continue
            keep(array)
            batch.arrays.append(id(array))

    def array_ids(self) -> set[int]:
        """Return the ids (``id()``) of all arrays added so far."""
        return {n for batch in self._batches.values() for n in batch.arrays}

    def find_shared(self, named: variable_paths.VariablePaths) -> None:
        """Find the arrays that share memory, and record them in ``shared``. ``named`` tells whether a
        variable leads to an array: ``id(array) in named``."""
        sizes = [
            shared_buffers.SameSize(b.devices, b.kind.device_bytes or 0, b.arrays)
            for b in self._batches.values()
        ]
        self.shared.search(self._arrays, sizes, named)

    def skip(self) -> set[int]:
        """Return the ids of jaxscope's own containers of live arrays, which the search for variables must not
        enter."""
        return {id(self._arrays)}

    def _new_batch(self, array: Any, sharding: Any, key: tuple[Any, ...]) -> _Batch:
        """Return a new, empty batch for arrays with the properties of ``array``.

        Args:
          sharding: the sharding of ``array``.
          key: identifies the batch: (id of the aval, key of the sharding, committed, stack, layout).
        """
        _, sharding_key, committed, stack, layout = key
        if sharding_key not in self._sharding_index:
            self._sharding_index[sharding_key] = self.shardings.index(sharding)
        if stack not in self._lines:
            origin = shield.attempt("array_origin", allocation_sites.line, stack)
            self._lines[stack] = self._frames.setdefault(origin, origin)  # one object for equal lines
        aval = array.aval
        order = None if layout is None else getattr(array.format.layout, "major_to_minor", None)
        kind = _Kind(
            shape=signature.dimensions(getattr(aval, "shape", None)),
            dtype=signature.dtype_name(aval.dtype),
            bytes=shield.attempt("array_bytes", _bytes, array),
            device_bytes=shield.attempt("array_bytes", _device_bytes, array),
            sharding=self._sharding_index[sharding_key],
            layout=None if order is None else str(tuple(order)),
            committed=committed if isinstance(committed, bool) else None,
        )
        kind = self._equal.setdefault(msgspec.structs.astuple(kind), kind)
        devices = shield.attempt("array_devices", _device_ids, sharding) or ()
        return _Batch(kind, self._lines[stack], devices)

    def groups(
        self, named: variable_paths.VariablePaths, suspects: Collection[UnnamedKey] = ()
    ) -> list[ArrayGroup]:
        """Return the live arrays in groups, the largest group first, and release the arrays. Arrays to which
        a variable leads are grouped by properties and path, all others by properties and the line that
        created them. If there are more than MAX_GROUPS groups, the smallest ones are merged. Also set
        ``lengths``, ``bounded`` and ``parts``.

        Args:
          named: the paths of the arrays to which variables lead.
          suspects: (shape, dtype, origin) of arrays that may be a leak because no variable leads to them.
            Their group gets the object that refers to them, as a Holder.
        """
        counts = self._count(named, MAX_GROUPS)
        short = counts is None
        counts = counts or self._count(named, None) or []
        self.lengths, self.bounded = shield.attempt("array_names", named.lengths, short) or ({}, [])
        holders = self._holders(counts, suspects)
        self._arrays.clear()
        groups = [*_named_groups(counts), *self._unnamed_groups(counts, holders)]
        groups.sort(key=_largest_first)
        for kept, shorten in ((MAX_GROUPS // 2, _first_steps), (MAX_GROUPS, lambda path: "…")):
            if len(groups) > MAX_GROUPS:
                groups = sorted(groups[:kept] + _merged(groups[kept:], shorten), key=_largest_first)
        return groups

    def _unnamed_groups(
        self, counts: list[_Counted], holders: dict[UnnamedKey, Holder | None]
    ) -> list[ArrayGroup]:
        """Return the arrays to which no variable leads, grouped by properties and by the line that created
        them. Arrays whose memory is counted with other arrays are in no group; their number is added to
        ``parts``.

        Args:
          counts: all live arrays, counted by path.
          holders: for suspected leaks: (shape, dtype, origin) of arrays -> the object that refers to them.
        """
        unnamed: collections.Counter[tuple[_Kind, Frame | None]] = collections.Counter()
        for counted in counts:
            own_memory = sum(n not in self.shared.within for n in counted.unnamed)
            self.parts += len(counted.unnamed) - own_memory
            if own_memory:
                unnamed[counted.batch.kind, counted.batch.origin] += own_memory
        return [
            _group(kind, None, n, origin, holder=holders.get(unnamed_key(kind, origin)))
            for (kind, origin), n in unnamed.items()
        ]

    def _count(self, named: variable_paths.VariablePaths, most: int | None) -> list[_Counted] | None:
        """Count the live arrays by the path of the variable that leads to them. Return one entry for each
        batch (arrays with equal properties and creation stack); None if there are more than ``most``
        different pairs of properties and path.

        Args:
          named: the paths of the arrays to which variables lead.
          most: the largest number of pairs. None: there is no limit, and each number in a path is replaced by
            ``*`` so that there are fewer paths.
        """
        counts: list[_Counted] = []
        distinct: set[tuple[_Kind, str]] = set()
        within = self.shared.within
        for batch in self._batches.values():
            by_path = named.count(batch.arrays, most)
            if by_path is None:
                return None
            shared = named.count([n for n in batch.arrays if n in within], most) if within else None
            counts.append(_Counted(batch, by_path[0], shared[0] if shared else {}, by_path[1]))
            if most is not None:
                distinct.update((batch.kind, path) for path in by_path[0])
                if len(distinct) > most:
                    return None
        return counts

    def _holders(
        self, counts: list[_Counted], suspects: Collection[UnnamedKey]
    ) -> dict[UnnamedKey, Holder | None]:
        """Find what keeps the arrays of suspected leaks alive. Return a dict: (shape, dtype, origin) of the
        arrays -> the object that refers to most of them; None if the search for this object failed. At most
        MAX_SUSPECTS arrays of a leak are examined.

        Args:
          counts: all live arrays, counted by path.
          suspects: (shape, dtype, origin) of the arrays of each suspected leak.
        """
        samples: dict[UnnamedKey, set[int]] = {}
        for counted in counts if suspects else ():
            key = unnamed_key(counted.batch.kind, counted.batch.origin)
            if key in suspects:
                sample = samples.setdefault(key, set())
                # Arrays in the memory of others are included: of two arrays on one buffer, one may be
                # referred to by C++ and the other by a list.
                sample.update(counted.unnamed[: MAX_SUSPECTS - len(sample)])
        holders = {}
        for key, sample in samples.items():
            arrays = [a for a in self._arrays if id(a) in sample]
            holders[key] = shield.attempt("array_holders", referrers.held_by, arrays, self._arrays)
        return holders


class _Counted(NamedTuple):
    """The arrays of one batch, counted by the path of the variable that leads to them.

    Attributes:
      paths: path -> the number of arrays.
      shared: path -> how many of these arrays share the memory of other arrays.
      unnamed: ids of the arrays to which no variable leads.
    """

    batch: _Batch
    paths: dict[str, int]
    shared: dict[str, int]
    unnamed: list[int]


def _named_groups(counts: list[_Counted]) -> list[ArrayGroup]:
    """Return the arrays in ``counts`` to which variables lead: one group for each combination of properties
    and path. The ``origin`` of a group is the line that created its arrays; None if the line is unknown or
    not the same for all of them."""
    totals: collections.Counter[tuple[_Kind, str]] = collections.Counter()
    shared: collections.Counter[tuple[_Kind, str]] = collections.Counter()
    origins: dict[tuple[_Kind, str], Frame | None] = {}
    for batch, paths, shared_paths, _ in counts:
        for path, n in paths.items():
            key = (batch.kind, path)
            totals[key] += n
            shared[key] += shared_paths.get(path, 0)
            if origins.setdefault(key, batch.origin) is not batch.origin:
                origins[key] = None
    return [_group(*key, n, origins[key], shared=shared[key]) for key, n in totals.items()]


def _largest_first(g: ArrayGroup) -> tuple[int, str]:
    """Return a sort key for the group ``g`` of arrays: the group with the most bytes comes first, groups with
    equal bytes are sorted by path. Unknown bytes count as 0."""
    return -(g.bytes or 0), g.path or ""


def _group(
    kind: _Kind,
    path: str | None,
    count: int,
    origin: Frame | None,
    *,
    shared: int = 0,
    holder: Holder | None = None,
) -> ArrayGroup:
    """Return the group of ``count`` arrays with the properties ``kind``.

    Args:
      path: the path of the variable that leads to the arrays; None: no variable does.
      origin: the line that created the arrays; None: unknown, or several lines did.
      shared: how many of the arrays share the memory of other arrays.
      holder: the object that refers to the arrays; None: unknown.
    """
    return ArrayGroup(
        path=path,
        count=count,
        shared=shared,
        shape=kind.shape,
        dtype=kind.dtype,
        bytes=None if kind.bytes is None else kind.bytes * count,
        device_bytes=None if kind.device_bytes is None else kind.device_bytes * count,
        sharding=kind.sharding,
        committed=kind.committed,
        layout=kind.layout,
        origin=origin,
        holder=holder,
    )


def _first_steps(path: str) -> str:
    """Return the first two steps of ``path``, the path of a variable to arrays, and ``…``:
    ``state.params['a']['b']`` -> ``state.params…``."""
    return "".join(_STEPS.findall(path)[:2]).removesuffix("…") + "…"


def _merged(groups: list[ArrayGroup], shorten: Callable[[str], str]) -> list[ArrayGroup]:
    """Shorten the path of each of ``groups`` by ``shorten``, merge the groups with equal short paths and
    equal shardings, and return the resulting groups. A group that is merged with no other keeps its full
    path."""
    merged: dict[tuple[Any, ...], list[ArrayGroup]] = {}
    for g in groups:
        merged.setdefault((g.path if g.path is None else shorten(g.path), g.sharding), []).append(g)
    return [members[0] if len(members) == 1 else _sum(path, members) for (path, _), members in merged.items()]


def _sum(path: str | None, members: list[ArrayGroup]) -> ArrayGroup:
    """Return one group, at ``path``, for all arrays of the groups ``members``. A property, such as the shape,
    is None if it differs between members. A sum, such as the bytes, is None if it is unknown for a member.
    The group has no ``holder``."""

    def common(name: str) -> Any:
        values = {getattr(g, name) for g in members}
        return values.pop() if len(values) == 1 else None

    def total(name: str) -> int | None:
        values = [getattr(g, name) for g in members]
        return None if None in values else sum(values)

    same: dict[str, Any] = {
        n: common(n) for n in ("shape", "dtype", "sharding", "committed", "layout", "origin")
    }
    sums: dict[str, Any] = {n: total(n) for n in ("count", "shared", "bytes", "device_bytes")}
    return ArrayGroup(path=path, **same, **sums)


def _bytes(array: Any) -> int:
    """Return the size of ``array`` over all devices, in bytes, replicas counted once."""
    return int(array.nbytes)


def _device_bytes(array: Any) -> int | None:
    """Return the bytes that ``array`` takes on each device that has a shard of it, with tiles and padding.
    Return None for the token of an ordered effect, which has no size."""
    try:
        # The size of one shard times the number of devices (checked on jaxlib 0.10.2 and 0.12.0.1: 2176 for a
        # 17x4 float32 replicated on 8 devices).
        size = int(array.on_device_size_in_bytes())
    except RuntimeError as e:  # a token is a live bool[0] "with no defined byte size"
        if "UNIMPLEMENTED" not in str(e):
            raise
        return None
    return size // max(1, len(array.sharding.device_set))


def _device_ids(sharding: Any) -> tuple[int, ...]:
    """Return the ids of this process's devices in ``sharding``."""
    return tuple(d.id for d in sharding.addressable_devices)


def _stacks(frame: FrameType | None, trace: Any) -> list[list[FrameType]]:
    """Return the frames whose variables are searched for arrays, one list for each stack, innermost frame
    first. The stacks are: the traceback ``trace`` (None: no traceback), ``frame`` with its callers, and the
    other threads. Only frames of the user are in the lists; those of the first two stacks may also be of
    installed packages."""
    raised = []
    while trace is not None:
        if frames.is_user(trace.tb_frame):
            raised.append(trace.tb_frame)
        trace = trace.tb_next
    return [raised[::-1], *variable_paths.stacks(frame)] if raised else variable_paths.stacks(frame)


def _addressable() -> str:
    """Return the ids of this process's devices as ranges: ``0-3,8``."""
    return device_ranges(sorted({d.id for client in jax_internals.clients() for d in client.local_devices()}))


def _on_cpu() -> bool:
    """Return whether the program has started JAX's CPU backend."""
    return any(getattr(client, "platform", None) == "cpu" for client in jax_internals.clients())


def _memory() -> list[DeviceMemory]:
    """Return the memory in use, its peak and its limit, in bytes, for each device of this process. A device
    that does not report these figures is left out."""
    return [
        DeviceMemory(
            d.id, *(stats.get(name) for name in ("bytes_in_use", "peak_bytes_in_use", "bytes_limit"))
        )
        for client in jax_internals.clients()
        for d in client.local_devices()
        if (stats := d.memory_stats())
    ]
