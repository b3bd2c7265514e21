"""Bounds of the time one call of a compiled program takes on a machine, from the machine's peak rates.

Each is a time that no run can beat, and none is an estimate of a run: nothing overlaps perfectly, no rate is reached.

    compute      sum over element types of (flops of dots and convolutions) / (peak rate of that type)
    memory       (bytes of arguments + bytes of results) / (bandwidth of the memory): each once, as the least there is
    each axes    (bytes one device sends over them) / (what all its links together send)

all on one device, loops by their trip counts. ``least`` is the largest of them that is known; it ``binds``. The rate of
a type is the fastest the machine may use for it: f32 counts as bf16 on a TPU (JAX's default precision is one pass)
and as tf32 on a GPU. A device of a chip with two may have all of the chip's links. What a part of which is not
known is None: flops of a kernel XLA does not know, axes that leave a slice or a host, figures that nobody states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from jaxscope.analysis.machines import GPU, MACHINES, Machine
from jaxscope.schema.targets import Target

# HLO's element types -> names of peak rates, any of which the machine may use.
_RATES = {
    "bf16": ("bf16",),
    "f16": ("bf16",),
    "s8": ("int8",),
    "u8": ("int8",),
    "f8e4m3fn": ("fp8", "bf16"),
    "f8e5m2": ("fp8", "bf16"),
    "f8e4m3b11fnuz": ("fp8", "bf16"),
}
COMPUTE, MEMORY = "compute", "memory"


class Bounds(msgspec.Struct, frozen=True):
    """Seconds; ``axes`` by axes joined with a comma. ``binds``: compute, memory or an entry of ``axes``."""

    compute: float | None
    memory: float | None
    axes: dict[str, float | None]
    least: float | None
    binds: str | None


def of_program(
    target: Target,
    flops: Mapping[str, int] | None,
    argument_bytes: int | None,
    output_bytes: int | None,
    wire: Mapping[str, int | None],
    mesh: Sequence[tuple[str, int]] | None,
) -> Bounds | None:
    """The bounds of a program on ``target``; None where the machine is not in the catalogue.

    Args:
      flops: by HLO element type, in one call on one device; None: not known.
      wire: bytes that one device sends in one call, by axes (hlo.collectives.wire_by_axes).
      mesh: (axis, size) in mesh order.
    """
    machine = MACHINES.get(target.machine)
    if machine is None:
        return None
    compute = _compute(machine, flops)
    memory = None
    if machine.hbm is not None and argument_bytes is not None and output_bytes is not None:
        memory = (argument_bytes + output_bytes) / (machine.hbm.value / machine.devices_per_chip)
    egress = _egress(machine)
    axes = {
        name: sent / egress
        if sent is not None and egress is not None and within(target, name, mesh)
        else None
        for name, sent in wire.items()
        if name
    }
    known = {COMPUTE: compute, MEMORY: memory, **axes}
    binds = max((n for n, v in known.items() if v is not None), key=lambda n: known[n] or 0.0, default=None)
    return Bounds(compute, memory, axes, known[binds] if binds is not None else None, binds)


def within(target: Target, axes: str, mesh: Sequence[tuple[str, int]] | None) -> bool:
    """Do groups over ``axes`` surely stay in one slice of a TPU, one host of GPUs?

    Devices are numbered slice by slice (host by host), and a mesh is laid over them in that order: an axis of
    size n whose neighbours are k apart stays inside where n * k divides what a slice holds.
    """
    parts = target.slices if target.platform != GPU else target.grid[0] if target.grid else 0
    if parts == 1:
        return True
    if parts < 1:
        return False  # a damaged log
    inside = target.devices // parts
    if mesh is None or axes == "?":
        return False
    sizes = [size for _, size in mesh]
    reach = {name: math.prod(sizes[i:]) for i, (name, _) in enumerate(mesh)}
    return all(0 < reach.get(a.partition(":")[0], 0) <= inside and inside % reach[a.partition(":")[0]] == 0 for a in axes.split(","))  # fmt: skip


def _compute(machine: Machine, flops: Mapping[str, int] | None) -> float | None:
    if not flops:
        return None  # without matrices there is other arithmetic, which nobody counted
    total = 0.0
    for kind, n in flops.items():
        names = ("tf32" if machine.platform == GPU else "bf16",) if kind == "f32" else _RATES.get(kind, ())
        rates = [machine.flops[name].value for name in names if name in machine.flops]
        if not rates:
            return None
        total += n / (max(rates) / machine.devices_per_chip)
    return total


def _egress(machine: Machine) -> float | None:
    """Bytes a second that one chip can send to its neighbours, all links together."""
    if machine.link is None:
        return None
    return machine.link.value * (machine.links or 1)
