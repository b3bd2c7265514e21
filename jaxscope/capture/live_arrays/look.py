"""One look at the live arrays: what there is, where, under which name. Metadata only.

No device is waited for, no buffer fetched, nothing of an array survives the look but numbers and texts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

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
from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.events import ArraysSeen
from jaxscope.schema.keys import Frame

MAX_GROUPS = 512
MAX_SUSPECTS = 8

Lost = tuple[Any, ...]  # how arrays without a name are known again: by shape, dtype and line
_STEPS = re.compile(r"\[[^\[\]]*\]|\.?[^.\[]+")


class _Kind(msgspec.Struct, eq=False):
    """What arrays of one aval, sharding, layout and committedness have in common."""

    shape: tuple[int | str, ...] | None
    dtype: str | None
    bytes: int | None
    device_bytes: int | None
    sharding: int | None
    layout: str | None
    committed: bool | None


class Look:
    """Begin with ``Look()``: it knows how many arrays there are before it has cost much."""

    def __init__(self) -> None:
        self._began = time.perf_counter_ns()
        self._live = [a for client in jax_internals.clients() for a in client.live_arrays()]
        self.count = len(self._live)

    @property
    def seconds(self) -> float:
        """What it has cost so far."""
        return (time.perf_counter_ns() - self._began) / 1e9

    def take(
        self,
        frame: FrameType | None,
        why: str,
        step: int | None,
        trace: Any = None,
        suspects: Collection[Lost] = (),
        **more: Any,
    ) -> ArraysSeen:
        """The snapshot, named from ``frame`` outwards (and ``trace``, a traceback). To be called once.

        Of ``suspects``, what holds them is looked for.
        """
        live, self._live = self._live, []
        found = _Kinds()
        found.add(live)
        del live
        named = variable_paths.Owners(found.wanted(), found.skip())
        shield.attempt("array_names", named.look, _stacks(frame, trace))
        shield.attempt("shared_memory", found.share, named)
        groups = found.groups(named, suspects)
        return ArraysSeen(
            why=why,
            step=step,
            count=sum(g.count for g in groups),
            shardings=found.shardings.table,
            groups=groups,
            parts=found.parts,
            overlap=found.shared.overlap,
            addressable=shield.attempt("addressable", _addressable),
            memory=shield.attempt("device_memory", _memory) or [],
            host_limit=shield.attempt("host_memory", host_memory.limit) if _on_cpu() else None,
            cut=named.cut,
            cost_seconds=self.seconds,
            **more,
        )


def lost_as(k: _Kind | ArrayGroup, origin: Frame | None) -> Lost:
    return k.shape, k.dtype, origin


class _Alike:
    """Arrays of one kind that one stack made, by id; ``devices``: those of this process that hold them."""

    __slots__ = ("arrays", "devices", "kind", "origin")

    def __init__(self, kind: _Kind, origin: Frame | None, devices: tuple[int, ...]) -> None:
        self.arrays: list[int] = []
        self.kind = kind
        self.origin = origin
        self.devices = devices


class _Kinds:
    """The live arrays by what they have in common. Holds them until ``groups`` is asked for.

    JAX leaves arrays behind that nobody holds and that share the memory of another: the parts that
    ``addressable_shards``, ``float``, ``np.asarray`` or a reshard took of an array, held by it in C++ (0.10:
    up to two a device after one ``np.asarray``; 0.12: one). Those are no group: ``parts`` is how many there
    are.
    """

    def __init__(self) -> None:
        self.shardings = Shardings()
        self.shared = shared_buffers.Shared()
        self.parts = 0
        self._where: dict[Any, int | None] = {}
        self._kinds: dict[Any, _Alike] = {}
        self._equal: dict[tuple[Any, ...], _Kind] = {}  # equal avals may be several objects
        self._lines: dict[Any, Frame | None] = {}
        self._frames: dict[Frame | None, Frame | None] = {}
        self._arrays: list[Any] = []

    def add(self, live: list[Any]) -> None:
        kinds, makeup, keep = self._kinds, jax_internals.makeup, self._arrays.append
        for array in live:
            try:
                sharding, place, committed, stack, layout = makeup(array)
                # An aval's id is its own as long as its array lives.
                key = (id(array.aval), place, committed, stack, layout)
                alike = kinds.get(key)
                if alike is None:
                    alike = kinds[key] = self._read(array, sharding, key)
            except RuntimeError:  # another thread has donated it since
                continue
            keep(array)
            alike.arrays.append(id(array))

    def wanted(self) -> set[int]:
        """Ids of the arrays to be named."""
        return {n for alike in self._kinds.values() for n in alike.arrays}

    def share(self, named: variable_paths.Owners) -> None:
        """Find what lies in the memory of others."""
        sizes = [
            shared_buffers.Sized(a.devices, a.kind.device_bytes or 0, a.arrays) for a in self._kinds.values()
        ]
        self.shared.look(self._arrays, sizes, named)

    def skip(self) -> set[int]:
        return {id(self._arrays)}

    def _read(self, array: Any, sharding: Any, key: tuple[Any, ...]) -> _Alike:
        _, place, committed, stack, layout = key
        if place not in self._where:
            self._where[place] = self.shardings.index(sharding)
        if stack not in self._lines:
            origin = shield.attempt("array_origin", allocation_sites.line, stack)
            self._lines[stack] = self._frames.setdefault(origin, origin)  # one line, one object
        aval = array.aval
        order = None if layout is None else getattr(array.format.layout, "major_to_minor", None)
        kind = _Kind(
            shape=signature.dimensions(getattr(aval, "shape", None)),
            dtype=signature.dtype_name(aval.dtype),
            bytes=shield.attempt("array_bytes", _bytes, array),
            device_bytes=shield.attempt("array_bytes", _device_bytes, array),
            sharding=self._where[place],
            layout=None if order is None else str(tuple(order)),
            committed=committed if isinstance(committed, bool) else None,
        )
        kind = self._equal.setdefault(msgspec.structs.astuple(kind), kind)
        devices = shield.attempt("array_devices", _device_ids, sharding) or ()
        return _Alike(kind, self._lines[stack], devices)

    def groups(self, named: variable_paths.Owners, suspects: Collection[Lost] = ()) -> list[ArrayGroup]:
        """The largest first; so many that they are no reading any more are put together."""
        told = self._counted(named, MAX_GROUPS) or self._counted(named, None) or []
        held = self._held(told, suspects)
        self._arrays.clear()
        within = self.shared.within
        found: dict[tuple[_Kind, str], list[int]] = {}  # how many, and of them in the memory of others
        origins: dict[tuple[_Kind, str], Frame | None] = {}
        lost: dict[tuple[_Kind, Frame | None], int] = {}
        for alike, paths, again, unnamed in told:
            for path, n in paths.items():
                both = found.setdefault((alike.kind, path), [0, 0])
                both[0] += n
                both[1] += again.get(path, 0)
                if origins.setdefault((alike.kind, path), alike.origin) is not alike.origin:
                    origins[alike.kind, path] = None
            left = sum(n not in within for n in unnamed)
            self.parts += len(unnamed) - left
            if left:
                lost[alike.kind, alike.origin] = lost.get((alike.kind, alike.origin), 0) + left
        groups = [
            _group(kind, path, n, origins[kind, path], shared=again)
            for (kind, path), (n, again) in found.items()
        ]
        groups += [
            _group(kind, None, n, origin, held=held.get(lost_as(kind, origin)))
            for (kind, origin), n in lost.items()
        ]
        groups.sort(key=_size)
        for kept, shorter in ((MAX_GROUPS // 2, _below), (MAX_GROUPS, _anywhere)):
            if len(groups) > MAX_GROUPS:
                groups = sorted(groups[:kept] + _merged(groups[kept:], shorter), key=_size)
        return groups

    def _counted(self, named: variable_paths.Owners, most: int | None) -> list[Counted] | None:
        """None: there are more than ``most`` paths."""
        found: list[Counted] = []
        distinct: set[tuple[_Kind, str]] = set()
        within = self.shared.within
        for alike in self._kinds.values():
            counted = named.count(alike.arrays, most)
            if counted is None:
                return None
            shared = named.count([n for n in alike.arrays if n in within], most) if within else None
            found.append((alike, counted[0], shared[0] if shared else {}, counted[1]))
            if most is not None:
                distinct.update((alike.kind, path) for path in counted[0])
                if len(distinct) > most:
                    return None
        return found

    def _held(self, told: list[Counted], suspects: Collection[Lost]) -> dict[Lost, str | None]:
        """What holds arrays of ``suspects``."""
        chosen: dict[Lost, set[int]] = {}
        for alike, _, _, unnamed in told if suspects else ():
            what = lost_as(alike.kind, alike.origin)
            if what in suspects:
                some = chosen.setdefault(what, set())
                # Also those in the memory of others: a buffer may have one array that C++ holds and one of a list.
                some.update(unnamed[: MAX_SUSPECTS - len(some)])
        found = {}
        for what, some in chosen.items():
            arrays = [a for a in self._arrays if id(a) in some]
            found[what] = shield.attempt("array_holders", referrers.held_by, arrays, self._arrays)
        return found


# How many by path, how many of them in the memory of others, and those without a path.
Counted = tuple[_Alike, dict[str, int], dict[str, int], list[int]]


def _size(g: ArrayGroup) -> tuple[int, str]:
    return -(g.bytes or 0), g.path or ""


def _group(
    k: _Kind, path: str | None, count: int, origin: Frame | None, *, shared: int = 0, held: str | None = None
) -> ArrayGroup:
    return ArrayGroup(
        path=path,
        count=count,
        shared=shared,
        shape=k.shape,
        dtype=k.dtype,
        bytes=None if k.bytes is None else k.bytes * count,
        device_bytes=None if k.device_bytes is None else k.device_bytes * count,
        sharding=k.sharding,
        committed=k.committed,
        layout=k.layout,
        origin=origin,
        held=held,
    )


def _below(path: str) -> str:
    """``state.params['a']['b']`` -> ``state.params…``."""
    return "".join(_STEPS.findall(path)[:2]).removesuffix("…") + "…"


def _anywhere(path: str) -> str:
    return "…"


def _merged(groups: list[ArrayGroup], shorter: Callable[[str], str]) -> list[ArrayGroup]:
    """Groups that lie alike put together under a shorter path: what is on which device stays known."""
    found: dict[tuple[Any, ...], list[ArrayGroup]] = {}
    for g in groups:
        found.setdefault((g.path if g.path is None else shorter(g.path), g.sharding), []).append(g)
    return [members[0] if len(members) == 1 else _sum(path, members) for (path, _), members in found.items()]


def _sum(path: str | None, members: list[ArrayGroup]) -> ArrayGroup:
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
    """As the program sees it."""
    return int(array.nbytes)


def _device_bytes(array: Any) -> int | None:
    """Bytes on each device that holds a part, as the device keeps them (its tiles and padding included).

    ``on_device_size_in_bytes`` is the size of one shard times the devices (jaxlib, read and checked on
    0.10.2 and 0.12.0.1: 17x4 float32 replicated on 8 devices says 2176). None: the token of an ordered effect, a
    live bool[0] "with no defined byte size".
    """
    try:
        size = int(array.on_device_size_in_bytes())
    except RuntimeError as e:
        if "UNIMPLEMENTED" not in str(e):
            raise
        return None
    return size // max(1, len(array.sharding.device_set))


def _device_ids(sharding: Any) -> tuple[int, ...]:
    """Of the devices of this process."""
    return tuple(d.id for d in sharding.addressable_devices)


def _stacks(frame: FrameType | None, trace: Any) -> list[list[FrameType]]:
    """Of ``frame``; where an exception ended the program, of the frames it left."""
    left = []
    while trace is not None:
        if frames.is_user(trace.tb_frame):
            left.append(trace.tb_frame)
        trace = trace.tb_next
    return [left[::-1], *variable_paths.stacks(frame)] if left else variable_paths.stacks(frame)


def _addressable() -> str:
    return device_ranges(sorted({d.id for client in jax_internals.clients() for d in client.local_devices()}))


def _on_cpu() -> bool:
    return any(getattr(client, "platform", None) == "cpu" for client in jax_internals.clients())


def _memory() -> list[DeviceMemory]:
    found = []
    for client in jax_internals.clients():
        for d in client.local_devices():
            said = d.memory_stats() or {}
            if said:
                found.append(
                    DeviceMemory(
                        d.id, said.get("bytes_in_use"), said.get("peak_bytes_in_use"), said.get("bytes_limit")
                    )
                )
    return found
