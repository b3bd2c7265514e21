"""Compute the least time of a collective on the links and the network between the chips of a target.

Chips of a slice (TPU) or a host (GPU) are joined by links, slices and hosts by a network. Of a group of ``n``
devices ``k`` are in each of ``p`` slices or hosts; ``B`` is the largest side of the collective on one device,
``S`` = (n-1)/n B.

links     all-gather, reduce-scatter, all-to-all: each chip receives, or sends, S; all-reduce: each at least
          S, all together 2 S a chip (Patarasuk and Yuan, Bandwidth optimal all-reduce, 2009) where no
          switch reduces. A switch between GPUs can (NVLS: eight H100 reduce faster than 2 S over 450 GB/s
          allows, NVIDIA/nccl-tests#212), so S there. A permute, a broadcast: B at one chip.
network   all-gather, reduce-scatter: the members in a slice need (p-1)/p B from outside once, together, over
          k shares of their network; all-reduce twice that (once where a switch may reduce); all-to-all:
          (p-1)/p B a device, since no two need the same; send: B. A permute that leaves a slice: unknown,
          since only some do.

A slice's edge has fewer links: where the torus does not wrap around, its corner has one an axis
(``links_of``).
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
    """The number of links of a chip: the fewest, the mean and the most of all chips."""

    least: float
    mean: float
    most: float


class Reach(msgspec.Struct, frozen=True):
    """The members of a group in one slice or host, and the number of slices or hosts that it spans."""

    inside: int
    parts: int


class Load(msgspec.Struct, frozen=True):
    """Lower bounds on the seconds of a transfer: over the links of one chip, over all links together, and
    over the network.

    Attributes:
      edge: seconds over the links of the chip with the fewest links.
      links: seconds over all links together.
      network: seconds over the network between slices or hosts.
    """

    edge: float = 0.0
    links: float = 0.0
    network: float = 0.0

    def times(self, executions: int) -> Load:
        return Load(executions * self.edge, executions * self.links, executions * self.network)

    @property
    def seconds(self) -> float:
        """Return the longest of the three, as they may all be busy at once."""
        return max(self.edge, self.links, self.network)


def links_of(machine: Machine, grid: Sequence[int]) -> Links | None:
    """Return the links of a chip of one slice; None where it is unknown which slices wrap around."""
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
    """Return the number of slices of a TPU target or of hosts of a GPU target; 0 in a damaged log."""
    return target.slices if target.platform != GPU else target.grid[0] if target.grid else 0


def reach(target: Target, axes: Sequence[str] | None, mesh: Mesh | None) -> Reach | None:
    """Return the reach of groups along ``axes``; None if it is unknown, or not the same for all groups.

    Devices are numbered slice by slice (host by host), and a mesh is laid over them in that order.
    ``data:(1)2`` is the part of size 2 of axis data that has 1 before it.
    """
    parts = parts_of(target)
    if axes is None or mesh is None or parts < 1 or target.devices % parts:
        return None
    held = target.devices // parts
    inside = spans = 1
    for axis in axes:
        found = _stride(axis, mesh)
        if found is None:
            return None
        size, stride = found
        extent = size * stride
        if parts == 1 or (extent <= held and held % extent == 0):
            inside *= size
        elif stride % held == 0:
            spans *= size
        elif held % stride == 0 and extent % held == 0:
            inside, spans = inside * (held // stride), spans * (extent // held)
        else:
            return None
    return Reach(inside, spans)


def _stride(axis: str, mesh: Mesh) -> tuple[int, int] | None:
    """Return the size of an axis or of a part of it, and the distance of its neighbours in device order."""
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
    machine: Machine, target: Target, found: Collective, mesh: Mesh | None, everyone: bool
) -> Load | None:
    """Return the least time of one execution of ``found``; None: unknown.

    Args:
      everyone: whether all devices of the target are in a group. If not, a group may also use idle links of
        other chips, and their share of the network.
    """

    if found.wire_bytes is None or found.axes is None:
        return None
    sent = float(found.wire_bytes)
    if sent == 0:
        return Load()
    over = reach(target, found.axes, mesh)
    if over is None:
        return None
    twice = found.kind == "all-reduce"
    once = sent / 2 if twice else sent
    if twice and machine.platform == GPU:
        sent, twice = once, False
    if over.parts > 1:
        return _over_network(machine, found.kind, over, once, twice, everyone)
    links = links_of(machine, target.grid)
    if machine.link is None or links is None or links.most <= 0:
        return None
    rate = machine.link.value
    if not everyone or found.kind not in (*_MOVED, "all-reduce"):
        return Load(links=sent / (links.most * rate))
    return Load(edge=once / (links.least * rate), links=sent / (links.mean * rate))


def _over_network(
    machine: Machine, kind: str, over: Reach, once: float, twice: bool, everyone: bool
) -> Load | None:
    if machine.network is None or not everyone:
        return None
    rate = machine.network.value / machine.devices_per_chip
    if kind == "send":  # as a TPU's compiler writes what goes from slice to slice
        return Load(network=once / rate)
    members = over.inside * over.parts
    whole = once * members / (members - 1)
    outside = whole * (over.parts - 1) / over.parts
    if kind == "all-to-all":
        return Load(network=outside / rate)
    if kind in (*_MOVED, "all-reduce"):
        return Load(network=outside * (2 if twice else 1) / (over.inside * rate))
    return None
