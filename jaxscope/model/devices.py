"""Compute the used memory and the capacity of each device, and which programs fit into the rest.

The used memory is what the device's allocator states, or else the sum of the live arrays. CPU devices all use
the host's memory.
"""

from __future__ import annotations

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.programs import peak_bytes
from jaxscope.model import arrays, deaths
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run
from jaxscope.schema.keys import same_line

# If a smaller fraction of the bytes is in arrays on several devices, the program uses a single device.
SPREAD = 0.05


class Uneven(msgspec.Struct, frozen=True):
    """Devices that hold parts or copies of the same arrays, but different numbers of bytes.

    Attributes:
      look: the snapshot (list of live arrays) from which this was computed.
      by_device: for each of these devices, {device id: bytes of the live arrays on it to which a variable
        leads}.
      fullest, emptiest: ids of the devices with the most and the fewest bytes.
      groups: the arrays to which a variable leads that are on ``fullest`` and not on ``emptiest``, the
        largest first.
    """

    look: Snapshot
    by_device: dict[int, int]
    fullest: int
    emptiest: int
    groups: list[Group]

    @property
    def difference(self) -> int:
        """Return how many more bytes ``fullest`` has than ``emptiest``."""
        return self.by_device[self.fullest] - self.by_device[self.emptiest]


class Want(msgspec.Struct, frozen=True):
    """The memory that a program needs on one device, and the memory that the device has. Sizes are in bytes.

    Attributes:
      peak: the peak of the program: arguments, results and temporaries minus the aliased (donated) bytes.
      beside: bytes in use besides the program's arguments, on the fullest of its devices; None: unknown.
      capacity: bytes of memory of one device; of the host for CPU devices.
      shared_by: number of the program's devices that share this capacity (CPU devices); otherwise 1.
      host: whether the capacity is that of a host's memory, which can be exceeded for a while.
      ran: whether the program probably ran after it was compiled.
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
        """Return the bytes that must fit into ``capacity``: (``peak`` + ``beside``) times ``shared_by``.
        Unknown ``beside`` counts as 0."""
        return (self.peak + (self.beside or 0)) * self.shared_by

    @property
    def fits(self) -> bool:
        return self.wanted <= self.capacity

    @property
    def fits_alone(self) -> bool:
        """Return whether the program would fit if nothing besides its arguments were in the memory."""
        return self.peak * self.shared_by <= self.capacity


def uneven(look: Snapshot) -> Uneven | None:
    """Return the devices that hold parts or copies of the same arrays, but different numbers of bytes. None
    if there are no such devices, if ``look.bytes`` is unknown, or if less than SPREAD of all bytes is in
    arrays on several devices. ``look`` is a snapshot: all live arrays of a process at one moment."""
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
    # Arrays to which no variable leads may be released at any moment: a result that is not assigned yet, or
    # part of a reference cycle that Python has not collected.
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
    """Return the ids of the devices that hold the arrays of ``g``. None if unknown."""
    return None if g.sharding is None else sh.device_ids(g.sharding.devices)


def capacities(process: Process) -> dict[int, int]:
    """Return {device id: bytes of its memory} for the devices of ``process``. Devices whose allocator states
    no limit (CPU) are left out."""
    found: dict[int, int] = {}
    for event in process.snapshots:
        for m in event.memory:
            if m.limit is not None and m.limit > 0:
                found[m.device] = max(found.get(m.device, 0), m.limit)
    return found


def host_memory(process: Process) -> int | None:
    """Return the bytes of memory that the CPU devices of ``process`` share. Return None if the number is
    unknown, or if the process does not run on a CPU backend."""
    if process.backend is None or process.backend.platform != "cpu":
        return None
    return max((e.host_limit for e in process.snapshots if e.host_limit), default=None)


def stated_capacity(c: Compilation) -> int | None:
    """Return the bytes of memory that the allocators state for one device of the program of ``c``; the
    smallest number if they differ. None if the devices are unknown, or if the allocator of one of them states
    no limit."""
    ids = sh.device_ids(c.compiled.devices) if c.compiled is not None else None
    stated = capacities(c.process) if ids else {}
    return min(stated[d] for d in ids) if ids and all(d in stated for d in ids) else None


def capacity_of(c: Compilation) -> tuple[int, int, bool] | None:
    """Return the memory for the program of ``c``: (bytes, number of the program's devices that share these
    bytes, whether they are memory of the host). ``(16_000_000_000, 8, True)`` for eight CPU devices of a
    host. None if the bytes or the devices are unknown."""
    stated = stated_capacity(c)
    if stated is not None:
        return stated, 1, False
    ids = sh.device_ids(c.compiled.devices) if c.compiled is not None else None
    host = host_memory(c.process)
    return None if host is None or not ids else (host, len(ids), True)


def wants(run: Run) -> list[Want]:
    """Return a Want for each compilation of the user's functions, the largest fraction of the capacity first.
    Compilations of programs whose memory or whose devices' capacity is unknown are left out."""
    found = [w for c in run.compilations.values() if c.function.user and (w := want(c)) is not None]
    return sorted(found, key=lambda w: -w.wanted / w.capacity)


def want(c: Compilation) -> Want | None:
    """Return the memory that the program of ``c`` needs and that its devices have. None if either is
    unknown."""
    if c.compiled is None or c.compiled.memory is None:
        return None
    peak, capacity = peak_bytes(c.compiled.memory), capacity_of(c)
    return None if peak is None or capacity is None else Want(c, peak, _beside(c), *capacity, _ran(c))


def _beside(c: Compilation) -> int | None:
    """Return the bytes in use besides the arguments of the program of ``c``, on the fullest of its devices,
    from the last snapshot before the compilation, or else the first snapshot of the process. None if
    unknown."""
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
    # The peak of the program includes its arguments, so they are not counted again here.
    return max(0, held - (c.compiled.memory.argument_bytes or 0))


def _ran(c: Compilation) -> bool:
    """Return whether the program that the call ``c`` compiled probably ran. False if ``c`` is no ordinary
    call, if memory ran out in the program, or if an exception with the line of ``c`` on its stack ended the
    user's program."""
    if c.entry != "call":
        return False
    if deaths.without_memory(c):
        return False
    died = c.process.died
    return not (died is not None and any(same_line(c.site, f) for f in died.stack))
