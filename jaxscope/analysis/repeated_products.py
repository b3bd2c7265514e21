"""Find the lines with matrix products that several devices all compute in full, although each device could
compute a part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.constraints import Constraint
from jaxscope.schema.keys import Frame

SHARE = 0.2  # of all flops of the devices: the least that is repeated. Padding of unequal parts is less.
UNEXPLAINED = 0.4  # the same if no cause is known: small weights are replicated on purpose
LEAST = 1 << 20  # flops in a call on all devices

Line = tuple[str, int]


class Repeated(msgspec.Struct, frozen=True):
    """The matrix products that several devices of a program repeat. All flops are those of matrix products
    and convolutions in one call, on all devices together.

    Attributes:
      flops: a lower bound on the flops that the devices compute.
      needed: the flops that would remain if nothing were repeated.
      devices: number of devices.
      lines: the lines with at least a fifth of the repeated flops each, the line with the most first.
      constraint: the user's sharding constraint that causes the repetition; None: there is none.
      axes: mesh axes along which the devices repeat the work. With ``constraint``: axes that split an
        argument, but not the constrained array. With ``rows_taken``: axes that split the array of this line.
        Without both: axes that split neither an argument nor a constrained array. Empty: no cause was found.
      rows_taken: the line that takes rows by index (``x[i]``) from an array that is split over ``axes``, so
        that each device gets all of these rows; None: there is none, or ``axes`` show another cause.
    """

    flops: int
    needed: int
    devices: int
    lines: list[Frame]
    constraint: Constraint | None = None
    axes: tuple[str, ...] = ()
    rows_taken: Frame | None = None


def find(texts: Texts) -> Repeated | None:
    """Return the matrix products that the devices of a program repeat. Return None if the program has fewer
    than LEAST flops or one device, if too small a share is repeated (``SHARE``; ``UNEXPLAINED`` if no cause
    is known), if the padding of unequal parts explains it, or if it is unknown."""
    hlo, lowered = texts.hlo, texts.stablehlo
    devices = (hlo.num_partitions or 1) * (hlo.replica_count or 1) if hlo is not None else 1
    total = (hlo.matrix_flops_at_least or 0) * devices if hlo is not None else 0
    if hlo is None or lowered is None or devices < 2 or total < LEAST:
        return None
    whole: dict[Line, int | None] = {}  # flops of the whole arrays; the HLO has those of one device
    for p in lowered.products:
        at = (p.source.file, p.source.line) if p.source is not None else None
        if at is None or p.flops is None or whole.get(at, 0) is None:
            if at is None:
                continue
            whole[at] = None
        else:
            whole[at] = (whole.get(at) or 0) + p.flops
    if any(p.source is None and p.flops is None for p in lowered.products):
        return None
    more: dict[Frame, int] = {}
    for line in hlo.flops_by_line:
        known = whole.get((line.source.file, line.source.line))
        if known and line.flops and line.flops * devices > known:
            more[line.source] = line.flops * devices - known
    # A product that is lowered once for several lines is in none of them, but its flops are known.
    repeated = min(sum(more.values()), total - sum(p.flops or 0 for p in lowered.products))
    if repeated < SHARE * total or (lowered.uneven and total < 2 * (total - repeated)):
        return None  # unequal parts are padded, which JX504 reports
    lines = sorted((f for f, n in more.items() if n >= SHARE * repeated), key=lambda f: -more[f])
    constraint, axes = _constraint(texts, lines)
    taken = None
    if not axes:
        taken, axes = _rows_taken(hlo.collectives, devices)
    if constraint is None and not axes and repeated < UNEXPLAINED * total:
        return None
    return Repeated(total, total - repeated, devices, lines, constraint, axes, taken)


def _rows_taken(collectives: Sequence[Collective], devices: int) -> tuple[Frame | None, tuple[str, ...]]:
    """Return (line, mesh axes) of the largest row lookup that gives all ``devices`` all rows; (None, ()) if
    there is none. The line takes rows by index from an array whose rows are split over the axes."""
    # The partitioner adds up the rows over the devices. If it does so over only some of the devices, the
    # indices are split over the others, as those of an embedding can be.
    found = [
        (c.bytes * (c.executions or 1), c.source, tuple(c.axes))
        for c in collectives
        if c.kind == "all-reduce"
        and c.origin == "inserted"
        and (c.op_name or "").rpartition("/")[2] == "gather"
        if c.bytes is not None and c.source is not None and c.axes and c.group_size == devices
    ]
    _, line, axes = max(found, key=lambda row: row[0], default=(0, None, ()))
    return line, axes


def _constraint(texts: Texts, lines: list[Frame]) -> tuple[Constraint | None, tuple[str, ...]]:
    """Return (sharding constraint, mesh axes that split an argument, but not the constraint's array) that
    explains repeated products on ``lines``; of several, the constraint on the largest array. If mesh axes
    split neither an argument nor an array with a constraint, return (None, these axes). Return (None, ()) if
    neither is found."""
    lowered = texts.stablehlo
    if lowered is None:
        return None, ()
    split = dict.fromkeys(
        axis.partition(":")[0]
        for a in lowered.arguments
        if a.sharding is not None
        for d in a.sharding.dimensions or ()
        for axis in d
    )
    constrained = [c for c in lowered.sharding_constraints if c.asked.dimensions is not None]
    named = {a.partition(":")[0] for c in constrained for d in c.asked.dimensions or () for a in d}
    sizes = {axis: n for m in lowered.meshes for axis, n in m.axes}
    unused = tuple(axis for axis, n in sizes.items() if n > 1 and axis not in {*split, *named})
    if unused:
        return None, unused
    at = {(f.file, f.line) for f in lines}
    found: list[tuple[int, Constraint, tuple[str, ...]]] = []
    for c in constrained:
        if c.asked.open or c.backward or c.asked.dimensions is None:
            continue
        # What a line reads is only to blame if it is whole on each device.
        reads = () if any(c.asked.dimensions) else c.used_at
        if at.isdisjoint(((c.source.file, c.source.line), *c.made_at, *reads)):
            continue
        has = {axis.partition(":")[0] for d in c.asked.dimensions for axis in d}
        missing = tuple(axis for axis in split if axis not in has)
        if missing and not all(c.asked.dimensions):
            found.append((c.bytes, c, missing))
    if not found:
        return None, ()
    _, constraint, axes = max(found, key=lambda row: row[0])
    return constraint, axes
