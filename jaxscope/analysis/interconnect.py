"""Compute the least time of a collective on the links and the network between the chips of a target.

Links connect the chips of a slice (TPU) or of a host (GPU); a network connects slices or hosts. A group of
``n`` devices has ``k`` devices in each of ``p`` slices or hosts. ``B`` is the bytes of the larger of operand
and result on one device, and ``S`` = (n-1)/n B.

links     all-gather, reduce-scatter, all-to-all: each chip receives, or sends, S. All-reduce: each chip sends
          at least S, and the chips together 2 S per chip (Patarasuk and Yuan, Bandwidth optimal all-reduce,
          2009) where no switch reduces. A switch between GPUs can reduce (NVLS: eight H100 are faster than
          2 S over 450 GB/s allows, NVIDIA/nccl-tests#212), so for GPUs it is S. Permute, broadcast: B at one
          chip.
network   all-gather, reduce-scatter: the k devices in a slice together need (p-1)/p B from outside once,
          over their k shares of the network. All-reduce: twice that (once where a switch may reduce).
          All-to-all: (p-1)/p B per device, since no two devices need the same bytes. Send: what one device
          sends. A permute that leaves a slice: unknown, since only some devices send.

A chip at the edge of a slice has fewer links if the torus does not wrap around: a chip at a corner has one
link per axis (``links_of``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.machines import CUBES, GPU, RINGS_OF_16, Machine
from jaxscope.schema.targets import Target

_SUB = re.compile(r"(.*):\((\d{1,9})\)(\d{1,9})")
_MOVED = ("all-gather", "reduce-scatter", "all-to-all")
Mesh = Sequence[tuple[str, int]]


class Links(msgspec.Struct, frozen=True):
    """The number of links between a chip and the other chips of its slice. A chip at the edge of the slice
    may have fewer links than a chip inside.

    Attributes:
      least, mean, most: the number of links of the chip with the fewest, of a chip on average, and of the
        chip with the most.
    """

    least: float
    mean: float
    most: float


class Reach(msgspec.Struct, frozen=True):
    """How each group of devices of a collective is spread over slices (TPU) or hosts (GPU).

    Attributes:
      inside: the number of the group's members in one slice or host.
      parts: the number of slices or hosts that the group spans.
    """

    inside: int
    parts: int


class Load(msgspec.Struct, frozen=True):
    """Lower bounds on the seconds that a transfer takes, one for each resource.

    Attributes:
      edge: seconds over the links of the chip with the fewest links.
      links: seconds over all links together.
      network: seconds over the network between slices or hosts.
    """

    edge: float = 0.0
    links: float = 0.0
    network: float = 0.0

    def times(self, executions: int) -> Load:
        """Return the load of this many executions, one after another."""
        return Load(executions * self.edge, executions * self.links, executions * self.network)

    @property
    def seconds(self) -> float:
        """Return the largest of ``edge``, ``links`` and ``network``, because all resources may be busy at
        once."""
        return max(self.edge, self.links, self.network)


def links_of(machine: Machine, grid: Sequence[int]) -> Links | None:
    """Return the number of links of the chips in one slice; one link for GPUs. Return None if it is unknown
    whether the two ends of an axis of the slice are connected to each other.

    Args:
      machine: the machine.
      grid: the number of chips along each axis of the slice.
    """
    if machine.platform == GPU:
        return Links(1, 1, 1)
    if machine.wraps == CUBES:
        wraps = [all(n % 4 == 0 for n in grid)] * len(grid)
    elif machine.wraps == RINGS_OF_16:
        wraps = [n == 16 for n in grid]
    else:
        return None
    least = mean = most = 0.0
    for n, around in zip(grid, wraps, strict=True):
        if n > 1:
            least += 2 if around else 1
            mean += 2 if around else 2 * (n - 1) / n
            most += 2 if around or n > 2 else 1
    return Links(least, mean, most)


def parts_of(target: Target) -> int:
    """Return the number of slices of a TPU target, or of hosts of a GPU target. Return 0 for a GPU target
    without a grid, which only a damaged recording contains."""
    return target.slices if target.platform != GPU else target.grid[0] if target.grid else 0


def reach(target: Target, axes: Sequence[str] | None, mesh: Mesh | None) -> Reach | None:
    """Return how the groups of devices of a collective are spread over slices (TPU) or hosts (GPU). Return
    None if this is unknown or differs between groups.

    Devices are assumed to be numbered slice by slice (host by host), and to be in this order in the mesh.

    Args:
      target: the machine and the number of chips.
      axes: the mesh axes, or parts of axes, along which the collective runs; None: unknown. ``data:(2)4`` is
        the part of size 4 of axis ``data`` after a part of size 2 (module ``hlo.axes``).
      mesh: (axis, size) in mesh order; None: unknown.
    """
    parts = parts_of(target)
    if axes is None or mesh is None or parts < 1 or target.devices % parts:
        return None
    devices_per_part = target.devices // parts
    inside = spans = 1
    for axis in axes:
        found = _stride(axis, mesh)
        if found is None:
            return None
        size, stride = found
        extent = size * stride
        if parts == 1 or (extent <= devices_per_part and devices_per_part % extent == 0):
            inside *= size
        elif stride % devices_per_part == 0:
            spans *= size
        elif devices_per_part % stride == 0 and extent % devices_per_part == 0:
            inside, spans = inside * (devices_per_part // stride), spans * (extent // devices_per_part)
        else:
            return None
    return Reach(inside, spans)


def _stride(axis: str, mesh: Mesh) -> tuple[int, int] | None:
    """Return (size, stride) of a mesh axis, or of a part of an axis such as ``data:(2)4``. The stride is the
    distance in device order between neighbors along the axis. Return None if ``mesh`` has no such axis or
    part."""
    sub = _SUB.fullmatch(axis)
    name = sub[1] if sub else axis
    place = next((i for i, (n, _) in enumerate(mesh) if n == name), None)
    if place is None or any(size < 1 for _, size in mesh):
        return None
    whole, behind = mesh[place][1], math.prod(size for _, size in mesh[place + 1 :])
    if sub is None:
        return whole, behind
    before, size = int(sub[2]), int(sub[3])
    if before < 1 or size < 1 or whole % (before * size):
        return None
    return size, behind * (whole // (before * size))


def load(
    machine: Machine, target: Target, collective: Collective, mesh: Mesh | None, all_devices: bool
) -> Load | None:
    """Return the least time of one execution of ``collective``, in seconds for each resource that
    it uses (links, network). Return None if it is unknown.

    Args:
      mesh: (axis, size) in mesh order; None: unknown.
      all_devices: whether the program runs on all devices of the target. If not, the collective may also use
        idle links and the network of other chips.
    """

    if collective.wire_bytes is None or collective.axes is None:
        return None
    sent = float(collective.wire_bytes)
    if sent == 0:
        return Load()
    over = reach(target, collective.axes, mesh)
    if over is None:
        return None
    twice = collective.kind == "all-reduce"
    once = sent / 2 if twice else sent
    if twice and machine.platform == GPU:
        sent, twice = once, False
    if over.parts > 1:
        return _over_network(machine, collective.kind, over, once, twice, all_devices)
    links = links_of(machine, target.grid)
    if machine.link is None or links is None or links.most <= 0:
        return None
    rate = machine.link.value
    if not all_devices or collective.kind not in (*_MOVED, "all-reduce"):
        return Load(links=sent / (links.most * rate))
    return Load(edge=once / (links.least * rate), links=sent / (links.mean * rate))


def _over_network(
    machine: Machine, kind: str, over: Reach, once: float, twice: bool, all_devices: bool
) -> Load | None:
    """Return the least time of one collective of several slices or hosts; None: unknown.

    Args:
      kind: the kind of the collective.
      over: how its groups are spread over slices or hosts.
      once: the bytes that one device sends; for an all-reduce only one half.
      twice: whether an all-reduce sends ``once`` twice, because no switch reduces.
    """
    if machine.network is None or not all_devices:
        return None
    rate = machine.network.value / machine.devices_per_chip
    if kind == "send":  # the TPU's compiler writes transfers between slices as sends
        return Load(network=once / rate)
    members = over.inside * over.parts
    whole = once * members / (members - 1)
    outside = whole * (over.parts - 1) / over.parts
    if kind == "all-to-all":
        return Load(network=outside / rate)
    if kind in (*_MOVED, "all-reduce"):
        return Load(network=outside * (2 if twice else 1) / (over.inside * rate))
    return None
