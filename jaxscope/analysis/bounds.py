"""Compute lower bounds of the time of one call of a compiled program on a machine, from the machine's peak
rates.

The bounds are not estimates: real programs reach neither a peak rate nor perfect overlap. All are for one
device:

    compute      sum over element types of (flops of dots and convolutions) / (peak rate of that type)
    memory       (bytes certainly moved, module hlo.traffic) / (bandwidth of the memory)
    mesh axes    one bound for each set of axes: the time of the collectives along these axes over links and
                 network (module interconnect), in loops multiplied by the trip counts

``least`` is the largest known bound, and ``binds`` is its name. The rate of a type is the fastest that the
machine may use for it: f32 counts as bf16 on a TPU (JAX's default precision is one pass) and as tf32 on a
GPU. A device of a chip with two devices may use all of the chip's links. A bound is None if any part of it is
unknown. Unknown are, for example, the time of a permute between two TPU slices, and a peak rate that no
public page states. The flops of custom kernels are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from jaxscope.analysis import interconnect
from jaxscope.analysis.hlo import branches
from jaxscope.analysis.hlo.axes import Axes
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.machines import GPU, MACHINES, Figure, Machine
from jaxscope.schema.targets import Target

# HLO's element types -> names of peak rates (keys of Machine.flops). The machine may use any of them.
_RATES = {
    "bf16": ("bf16",),
    "f16": ("bf16",),
    "f64": ("f64",),
    "s8": ("int8",),
    "u8": ("int8",),
    "f8e4m3fn": ("fp8", "bf16"),
    "f8e5m2": ("fp8", "bf16"),
    "f8e4m3b11fnuz": ("fp8", "bf16"),
}
COMPUTE, MEMORY = "compute", "memory"
Bound = str | tuple[str, ...]  # COMPUTE, MEMORY, or mesh axes


class Bounds(msgspec.Struct, frozen=True):
    """Lower bounds on the seconds of one call of a program on a target (a machine and a number of chips), one
    bound for each resource; None: unknown.

    Attributes:
      compute: the time of the floating-point operations.
      memory: the time to move bytes between the device's cores and its memory.
      axes: mesh axes -> time of the collectives along these axes; None: the time is unknown.
      least: the largest of these bounds: one call takes at least this time. None: all are unknown.
      binds: which bound is the largest: ``compute``, ``memory`` or a key of ``axes``; None: all are unknown.
      quoted: the known bounds above 0, named as in ``binds``, for which a figure of the machine was found on
        a page that only quotes the source (``Figure.quoted``).
      uncounted: why ``compute`` is None or leaves out flops; None: it leaves out no flops, or the reason is
        unknown.
    """

    compute: float | None
    memory: float | None
    axes: dict[Axes, float | None]
    least: float | None
    binds: Bound | None
    quoted: list[Bound] = []
    uncounted: str | None = None


def of_program(
    target: Target,
    flops: Mapping[str, int] | None,
    moved_bytes: int | None,
    collectives: Sequence[Collective],
    mesh: interconnect.Mesh | None,
    partitions: int | None,
    in_order: bool = True,
    uncounted: str | None = None,
) -> Bounds | None:
    """Return the lower bounds on the time of one call of a program on ``target``. Return None if the machine
    of the target is not in the table ``machines.MACHINES``.

    Args:
      target: the machine and the number of chips.
      flops: HLO element type -> lower bound on the flops of one call on one device; None or empty: the bound
        ``compute`` is None.
      moved_bytes: lower bound on the bytes moved between memory and cores in one call on one device; None or
        0: the bound ``memory`` is None.
      collectives: the program's collectives.
      mesh: (axis, size) of each axis of the device mesh, in mesh order; None: unknown.
      partitions: number of devices on which the program runs; None: unknown.
      in_order: whether the mesh is known to have the devices in the target's order. If not, it is unknown
        which devices are in the same TPU slice or host.
      uncounted: why ``flops`` is None or incomplete, as text for the result; None: it is complete, or the
        reason is unknown.
    """
    machine = MACHINES.get(target.machine)
    if machine is None:
        return None
    compute = _compute(machine, flops)
    memory = None
    if machine.hbm is not None and moved_bytes:  # 0 means that no bytes certainly move
        memory = moved_bytes / (machine.hbm.value / machine.devices_per_chip)
    if not in_order and interconnect.parts_of(target) != 1:
        mesh = None
    axes = _axes(machine, target, collectives, mesh, partitions == target.devices)
    known: dict[Bound, float | None] = {COMPUTE: compute, MEMORY: memory}
    known |= {over: spent for over, spent in axes.items() if over is not None}  # their time is unknown
    binds = max((n for n, v in known.items() if v is not None), key=lambda n: known[n] or 0.0, default=None)
    quoted = [n for n, v in known.items() if v and _is_quoted(machine, n)]
    why = uncounted if compute is not None else _why(machine, flops, uncounted)
    return Bounds(compute, memory, axes, known[binds] if binds is not None else None, binds, quoted, why)


def _why(machine: Machine, flops: Mapping[str, int] | None, uncounted: str | None) -> str:
    """Return why no compute bound is known: ``uncounted`` if given, or a type in ``flops`` has no known peak
    rate."""
    if flops is None:
        return uncounted or "the program's text was not read"
    if not flops:
        return uncounted or "the program has no matrix products, and only these are counted"
    kinds = [kind for kind in flops if _rate(machine, kind) is None]
    return f"no public page states how fast this machine computes with {', '.join(kinds)}"


def _axes(
    machine: Machine,
    target: Target,
    collectives: Sequence[Collective],
    mesh: interconnect.Mesh | None,
    all_devices: bool,
) -> dict[Axes, float | None]:
    """Return mesh axes (a key of ``Bounds.axes``) -> least time of the collectives along these axes, in
    seconds; None: unknown.

    Of the branches of a conditional, only the least time of each resource counts. ``all_devices`` tells
    whether the program runs on all devices of the target. If not, a collective may also use idle links and
    the network of other chips.
    """
    loads: dict[Axes, list[tuple[branches.Path, interconnect.Load | None]]] = {}
    for found in collectives:
        one = interconnect.load(machine, target, found, mesh, all_devices)
        known = one is not None and found.executions is not None
        each = one.times(found.executions) if known else None  # type: ignore[union-attr, arg-type]
        loads.setdefault(found.over, []).append((found.branches, each))
    return {over: _seconds(each) for over, each in loads.items() if over != ()}


def _seconds(loads: Sequence[tuple[branches.Path, interconnect.Load | None]]) -> float | None:
    """Return the least time of several collectives, in seconds; None if a load is unknown. ``loads`` has
    (branches of conditionals that contain the collective, its load)."""
    known = [(path, each) for path, each in loads if each is not None]
    if len(known) < len(loads):
        return None
    return interconnect.Load(
        branches.smallest([(path, each.edge) for path, each in known]),
        branches.smallest([(path, each.links) for path, each in known]),
        branches.smallest([(path, each.network) for path, each in known]),
    ).seconds


def _is_quoted(machine: Machine, bound: Bound) -> bool:
    """Return whether a figure of the machine for this bound was found on a page that only quotes the
    source."""
    figures: list[Figure | None] = [machine.link, machine.network]
    if bound == COMPUTE:
        figures = list(machine.flops.values())
    elif bound == MEMORY:
        figures = [machine.hbm]
    return any(f is not None and f.quoted is not None for f in figures)


def _compute(machine: Machine, flops: Mapping[str, int] | None) -> float | None:
    """Return the least time of ``flops`` on one device, in seconds. None: there are none, or a peak rate is
    unknown."""
    if not flops:
        return None  # a program without matrix products has other arithmetic, which is not counted
    total = 0.0
    for kind, n in flops.items():
        rate = _rate(machine, kind)
        if rate is None:
            return None
        total += n / (rate / machine.devices_per_chip)
    return total


def _rate(machine: Machine, kind: str) -> float | None:
    """Return the peak rate of one chip, in operations per second, for an element type (``bf16``) or for the
    types of a mixed product (``bf16 x s8``): the fastest rate that the machine may use. None: unknown."""
    found = []
    for one in kind.split(" x "):
        names = ("tf32" if machine.platform == GPU else "bf16",) if one == "f32" else _RATES.get(one, ())
        rates = [machine.flops[name].value for name in names if name in machine.flops]
        if not rates:
            return None
        found += rates
    return max(found)
