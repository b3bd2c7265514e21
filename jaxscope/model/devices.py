"""Compute each device's used memory, its capacity, and which programs fit into the rest.

An allocator's figure is preferred to the sum of the live arrays. The devices of a CPU share the host's
memory.
"""

from __future__ import annotations

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.programs import peak_bytes
from jaxscope.model import arrays
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run

SPREAD = 0.05  # of a snapshot's bytes: if less is on several devices, the program uses one of them


class Uneven(msgspec.Struct, frozen=True):
    """Devices of one program that hold different amounts of live arrays.

    Attributes:
      by_device: bytes of the named live arrays on each device.
      fullest, emptiest: device ids.
      groups: the arrays that cause the difference, the largest first.
    """

    look: Snapshot
    by_device: dict[int, int]
    fullest: int
    emptiest: int
    groups: list[Group]

    @property
    def difference(self) -> int:
        return self.by_device[self.fullest] - self.by_device[self.emptiest]


class Want(msgspec.Struct, frozen=True):
    """The memory that one program needs on a device, in bytes.

    Attributes:
      peak: the peak of the program: arguments, results and temporaries minus the aliased bytes.
      beside: bytes of live arrays that are not its arguments; None: unknown.
      capacity: bytes of memory of one device.
      shared_by: number of devices that share the capacity (those of a CPU), else 1.
      host: whether the capacity is that of a host's memory, which can be exceeded for a while.
      ran: whether the call for which the program was compiled continued.
    """

    compilation: Compilation
    peak: int
    beside: int | None
    capacity: int
    shared_by: int
    host: bool
    ran: bool

    @property
    def wanted(self) -> int:
        """The bytes needed of ``capacity``."""
        return (self.peak + (self.beside or 0)) * self.shared_by

    @property
    def fits(self) -> bool:
        return self.wanted <= self.capacity

    @property
    def fits_alone(self) -> bool:
        return self.peak * self.shared_by <= self.capacity


def uneven(look: Snapshot) -> Uneven | None:
    """Return the devices that share arrays and hold different amounts; None if they hold the same or share
    few bytes.

    Arrays without a name do not count: such an array may be a result that is not assigned yet, or part of a
    reference cycle that Python has not collected, and may be released at the next moment.
    """
    placed = [(g, ids) for g in look.groups if (ids := _ids(g)) is not None]
    sharing: set[int] = set()
    shared_bytes = 0
    for g, ids in placed:
        if len(ids) > 1:
            here = [d for d in ids if d in look.by_device]
            sharing.update(here)
            shared_bytes += (g.own_bytes or 0) * len(here)
    if len(sharing) < 2 or look.bytes is None or shared_bytes < SPREAD * look.bytes:
        return None
    held = dict.fromkeys(sorted(sharing), 0)
    for g, ids in placed:
        for d in ids if g.path is not None else ():
            if d in held:
                held[d] += g.own_bytes or 0
    fullest, emptiest = max(held, key=lambda d: held[d]), min(held, key=lambda d: held[d])
    if held[fullest] == held[emptiest]:
        return None
    alone = [g for g, ids in placed if g.path is not None and fullest in ids and emptiest not in ids]
    return Uneven(look, held, fullest, emptiest, sorted(alone, key=lambda g: -(g.device_bytes or 0)))


def _ids(g: Group) -> tuple[int, ...] | None:
    return None if g.sharding is None else sh.device_ids(g.sharding.devices)


def capacities(process: Process) -> dict[int, int]:
    """Return the capacity in bytes by device, for devices whose allocator states it."""
    found: dict[int, int] = {}
    for event in process.snapshots:
        for m in event.memory:
            if m.limit is not None and m.limit > 0:
                found[m.device] = max(found.get(m.device, 0), m.limit)
    return found


def host_memory(process: Process) -> int | None:
    """Return the bytes that all devices of a CPU share; None: not a CPU, or unknown."""
    if process.backend is None or process.backend.platform != "cpu":
        return None
    return max((e.host_limit for e in process.snapshots if e.host_limit), default=None)


def stated_capacity(c: Compilation) -> int | None:
    """Return the smallest capacity that the allocators of a program's devices state; None: one does not."""
    ids = sh.device_ids(c.compiled.devices) if c.compiled is not None else None
    stated = capacities(c.process) if ids else {}
    return min(stated[d] for d in ids) if ids and all(d in stated for d in ids) else None


def capacity_of(c: Compilation) -> tuple[int, int, bool] | None:
    """Return the memory of one device of a program: its bytes, the number of devices that share it, and
    whether it is a host's memory.

    None: unknown.
    """
    stated = stated_capacity(c)
    if stated is not None:
        return stated, 1, False
    ids = sh.device_ids(c.compiled.devices) if c.compiled is not None else None
    host = host_memory(c.process)
    return None if host is None or not ids else (host, len(ids), True)


def wants(run: Run) -> list[Want]:
    """Return the user's programs whose devices' capacity is known, those that need the largest share
    first."""
    found = [w for c in run.compilations.values() if c.function.user and (w := want(c)) is not None]
    return sorted(found, key=lambda w: -w.wanted / w.capacity)


def want(c: Compilation) -> Want | None:
    """Return the memory that the program of ``c`` needs; None if it or the capacity is unknown."""
    if c.compiled is None or c.compiled.memory is None:
        return None
    peak, capacity = peak_bytes(c.compiled.memory), capacity_of(c)
    return None if peak is None or capacity is None else Want(c, peak, _beside(c), *capacity, _ran(c))


def _beside(c: Compilation) -> int | None:
    """Return the bytes of live arrays on the fullest of the program's devices, without the program's
    arguments.

    From the last snapshot before it, else the first after it. The arguments are alive, but part of the peak.
    """
    assert c.compiled is not None and c.compiled.memory is not None
    before = [e for e in c.process.snapshots if e.t_ns <= c.t_ns]
    event = before[-1] if before else (c.process.snapshots or [None])[0]  # type: ignore[list-item]
    ids = sh.device_ids(c.compiled.devices)
    if event is None or ids is None:
        return None
    look = arrays.read(c.process, event)
    if look.bytes is None:
        return None
    in_use = {m.device: m.in_use for m in look.memory if m.in_use is not None}
    held = max((in_use.get(d, look.by_device.get(d, 0)) for d in ids), default=0)
    return max(0, held - (c.compiled.memory.argument_bytes or 0))


def _ran(c: Compilation) -> bool:
    """Return whether the program ran after it was compiled: not ahead of time, and not last before a
    failure."""
    if c.entry != "call":
        return False
    died = c.process.died
    return not (
        died is not None
        and any(c.site is not None and (f.file, f.line) == (c.site.file, c.site.line) for f in died.stack)
    )
