"""Read the lowered text (StableHLO) and the compiled text (HLO) of one program, and combine what they
contain.

The StableHLO has the lines of the user's code, the constants and the donated arguments; the HLO has the
instructions that run. One of the texts may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec

from jaxscope.analysis import rematerialization
from jaxscope.analysis.hlo import program as compiled
from jaxscope.analysis.hlo import shardings
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.stablehlo import reading as lowered
from jaxscope.analysis.stablehlo.constraints import Constraint
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.analysis.stablehlo.shardings import partition_spec, unsplit_arguments
from jaxscope.schema.keys import Captured, Frame, Memory

# The version of the result of ``analyze``: cached results of another version are not read.
VERSION = 90
MAX_ANALYSED = 64 << 20  # bytes; reading a text takes up to twelve times its size in memory


class Around(msgspec.Struct, frozen=True):
    """Facts about a program that are in the recording but not in the program's StableHLO or HLO.

    Attributes:
      mesh: (axis, size) of the mesh on which the program's arguments or results are; None: use the mesh that
        the HLO prints, if any.
      paths: the paths of the caller's arguments, in order; empty: unknown.
      dropped: positions of the caller's arguments that the program does not take.
      donated: paths of the arguments that the call donated; None: unknown.
      captured: arrays that the traced function closed over.
      warnings: XLA's warnings while it compiled the program; None: XLA's output was not recorded.
    """

    mesh: list[tuple[str, int]] | None = None
    paths: list[str] = []
    dropped: list[int] = []
    donated: list[str] | None = None
    captured: list[Captured] = []
    warnings: list[str] | None = None


class Texts(msgspec.Struct, frozen=True):
    """The contents of the StableHLO and the HLO of a program.

    Attributes:
      hlo, stablehlo: the contents of the two texts; None: there is no such text.
      remats: arrays that XLA's partitioner replicates on every device although the program does not request
        this ("involuntary full rematerialization"); None: XLA's output was not recorded.
    """

    hlo: compiled.Program | None
    stablehlo: lowered.Reading | None
    remats: list[rematerialization.Remat] | None = None


NOTHING = Texts(None, None)


def analyze(hlo_text: str | None, stablehlo_text: str | None, around: Around | None = None) -> Texts:
    """Analyze the StableHLO and the HLO of a program. What cannot be read is listed in the results'
    ``problems``; some damaged texts of StableHLO raise an exception such as IndexError.

    Args:
      hlo_text, stablehlo_text: the two texts; None: there is no such text.
      around: facts from the recording that the texts do not contain; None: no such facts.
    """
    around = around or Around()
    whole = unsplit_arguments(stablehlo_text or "")
    hlo = compiled.analyze(hlo_text, mesh=around.mesh, whole=whole) if hlo_text is not None else None
    aliased = _aliased(hlo)
    stablehlo = None
    if stablehlo_text is not None:
        stablehlo = lowered.analyze(
            stablehlo_text,
            captured=around.captured,
            paths=around.paths,
            dropped=around.dropped,
            donated=around.donated,
            aliased=aliased,
        )
        if hlo is not None:
            donation = (*stablehlo.donation, *_possible_donations(hlo, stablehlo))
            stablehlo = msgspec.structs.replace(stablehlo, donation=donation)
            collectives = [
                _with_constraint(_with_weight(c, stablehlo), stablehlo, hlo) for c in hlo.collectives
            ]
            hlo = msgspec.structs.replace(hlo, collectives=_with_other_operand(collectives, stablehlo))
    remats = None
    if around.warnings is not None:
        remats = rematerialization.find(around.warnings, hlo_text, around.mesh or _mesh(hlo, stablehlo))
    return Texts(hlo, stablehlo, remats)


def peak_bytes(memory: Memory) -> int | None:
    """Return arguments + results + temporaries - aliased bytes, in bytes on one device: the memory that these
    need if all exist at the same time. Return None if one of them is unknown."""
    # The compiler's own peak does not include the temporaries on CPU.
    parts = (memory.argument_bytes, memory.output_bytes, memory.temp_bytes, memory.alias_bytes)
    if any(p is None for p in parts):
        return None
    argument, output, temp, alias = (p or 0 for p in parts)
    return argument + output + temp - alias


def _mesh(
    hlo: compiled.Program | None, stablehlo: lowered.Reading | None
) -> Sequence[tuple[str, int]] | None:
    """Return (axis, size) of each axis of the mesh that the HLO or the StableHLO of a program names. Return
    None if they name no mesh, or several."""
    if hlo is not None and hlo.mesh:
        return hlo.mesh
    named = {m.axes for m in stablehlo.meshes if m.axes} if stablehlo is not None else set()
    return named.pop() if len(named) == 1 else None


def _with_weight(c: Collective, stablehlo: lowered.Reading) -> Collective:
    """Return the collective ``c``. If it gathers a weight of the model, as in fully sharded data parallelism,
    ``weight`` of the result is set."""
    if c.gathered is None:
        return c
    # A weight is multiplied with an operand that is split over the axes along which the weight is gathered.
    # The shardings of the arguments come from the StableHLO, because the HLO may lack them.
    axes = {axis.partition(":")[0] for axis in c.axes or ()}
    others = (a.sharding for a in stablehlo.arguments if a.index in c.gathered.beside)
    split = {
        axis.partition(":")[0] for s in others if s is not None for d in s.dimensions or () for axis in d
    }
    return msgspec.structs.replace(c, weight=c.gathered.argument) if split & axes else c


def _with_constraint(c: Collective, stablehlo: lowered.Reading, hlo: compiled.Program) -> Collective:
    """Return the collective ``c``. If XLA's partitioner inserted it because of a sharding constraint of the
    user, ``constraint`` and ``constrained_at`` of the result are set. Constraint and collective must agree in
    line or argument, in mesh axes and in bytes."""
    if c.origin != "inserted" or c.kind not in ("all-gather", "all-to-all") or not c.bytes:
        return c
    line = (c.source.file, c.source.line) if c.source is not None else None
    axes = None if c.axes is None else {axis.partition(":")[0] for axis in c.axes}
    found: Constraint | None = None
    for one in stablehlo.sharding_constraints:
        here = (one.source.file, one.source.line)
        # The line of the constraint, or of the operation that computes the constrained value.
        if line not in (here, *one.made_at) and (one.argument is None or c.op_name != one.argument):
            continue
        if c.op_name and one.backward is not None and one.backward is not ("transpose(" in c.op_name):
            continue
        wanted = _axes(one, hlo)
        device = one.bytes // math.prod(one.parts)
        if one.asked.open or wanted is None or (axes is None and wanted):
            continue
        # After an all-gather the value is not split over the axes. After an all-to-all it is split over them.
        if c.kind == "all-gather":
            fits = not wanted & (axes or set()) and _is_step(c.bytes, device, hlo.num_partitions or 1)
        else:
            fits = axes is not None and axes <= wanted and _is_step(c.bytes, device, 1)
        if fits and (found is None or line == here):
            found = one
    if found is None:
        return c
    split = _dimensions(found, hlo) or ()
    spec = partition_spec((*split, *((),) * (len(found.parts) - len(split))))
    return msgspec.structs.replace(c, constraint=spec, constrained_at=found.source)


def _with_other_operand(collectives: list[Collective], stablehlo: lowered.Reading) -> list[Collective]:
    """Return ``collectives``. If a constraint causes the all-gather of one operand of a matrix product, the
    constraint is also set in the all-gather of the product's other operand."""
    # If a constraint causes a gather of one operand, the partitioner gathers both over the same axes.
    gathered: dict[tuple[Frame | None, str | None], set[str]] = {}
    for c in collectives:
        if c.constrained_at is not None and c.kind == "all-gather":
            gathered.setdefault((c.constrained_at, c.constraint), set()).update(c.axes or ())
    users: dict[tuple[str, int], set[Frame]] = {}
    for one in stablehlo.sharding_constraints:
        for line in one.used_at:
            users.setdefault(line, set()).add(one.source)

    # The HLO has only the line of the product, not that of the constraint.
    def with_constraint(c: Collective) -> Collective:
        inserted = c.origin == "inserted" and c.kind == "all-gather" and c.constrained_at is None
        if not inserted or c.source is None or not c.axes:
            return c
        near = users.get((c.source.file, c.source.line), set())
        for (frame, spec), axes in gathered.items():
            if frame in near and axes >= set(c.axes):
                return msgspec.structs.replace(c, constraint=spec, constrained_at=frame)
        return c

    return [with_constraint(c) for c in collectives] if gathered else collectives


def _is_step(size: int, whole: int, devices: int) -> bool:
    """Return whether a collective's result has the size of a whole value, or of one of n equal parts of the
    value, where n divides the number of devices. Half and double this size count, too.

    Args:
      size: the bytes of the collective's result.
      whole: the bytes of the value.
      devices: the number of devices.
    """
    # XLA may convert the element type first.
    return any(
        total % (2 * size) == 0 < total and devices % (total // (2 * size)) == 0
        for total in (whole, 2 * whole, 4 * whole)
    )


def _axes(constraint: Constraint, hlo: compiled.Program) -> set[str] | None:
    """Return the names of the mesh axes over which a sharding constraint splits its value; None if
    unknown."""
    dimensions = _dimensions(constraint, hlo)
    return None if dimensions is None else {axis.partition(":")[0] for d in dimensions for axis in d}


def _dimensions(constraint: Constraint, hlo: compiled.Program) -> tuple[tuple[str, ...], ...] | None:
    """Return for each dimension the mesh axes over which a sharding constraint splits its value; None if
    unknown."""
    if constraint.asked.dimensions is not None or math.prod(constraint.parts) == 1:
        return constraint.asked.dimensions or ()
    return shardings.read(constraint.asked.text, hlo.mesh).dimensions


def _possible_donations(hlo: compiled.Program, stablehlo: lowered.Reading) -> list[Donation]:
    """Return further arguments that the user could donate, found only in the HLO: for each result that reuses
    no argument's memory, one argument of the same type that is not donated."""
    known = {d.argument for d in stablehlo.donation}
    users = {a.index: a for a in stablehlo.arguments if a.role == "user"}
    left: dict[str, int] = {}
    found = []
    for p in hlo.memory.parameters:
        value = users.get(p.number)
        if value is None or p.number in known or p.donor or p.aliased or not p.matches:
            continue
        kind = p.shape.partition("{")[0]
        used = sum(d.status == "possible" and d.type == value.type for d in stablehlo.donation)
        left.setdefault(kind, p.matches - used)
        if left[kind] > 0:
            left[kind] -= 1
            found.append(
                Donation(
                    value.name, "possible", None, value.index, value.type, value.bytes, value.device_bytes
                )
            )
    return found


def _aliased(hlo: compiled.Program | None) -> Collection[int] | None:
    """Return the numbers of the program's parameters that share a buffer with a result, according to the HLO.
    Return None if there is no HLO that could be read."""
    if hlo is None or hlo.module is None:
        return None
    return {a.parameter for a in hlo.memory.aliases}
