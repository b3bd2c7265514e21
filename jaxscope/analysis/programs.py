"""Both texts of one program together: what was lowered and what the compiler made of it.

Each text knows what the other does not: the StableHLO the user's lines, constants and donation, the HLO
what really runs. Either may be missing.
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
from jaxscope.analysis.stablehlo.shardings import partition_spec
from jaxscope.schema.keys import Captured, Frame, Memory

# Of what ``analyse`` says: a reader's cache made by another version is not read.
VERSION = 12
MAX_ANALYSED = 64 << 20  # bytes of a text: reading one takes up to twelve times its size in memory


class Around(msgspec.Struct, frozen=True):
    """What the recording knows of a program and its texts do not say.

    Attributes:
      mesh: (axis, size) of the mesh that its arguments lie on; None: the HLO's own, if it prints one.
      paths: of the caller's arguments, in order; ``dropped``: positions of those the program does not take.
      donated: paths of those the call donated; None: not known.
      captured: arrays the trace took in, by name.
      heard: warnings that XLA printed while it compiled the program; None: nobody could hear them.
    """

    mesh: list[tuple[str, int]] | None = None
    paths: list[str] = []
    dropped: list[int] = []
    donated: list[str] | None = None
    captured: list[Captured] = []
    heard: list[str] | None = None


class Texts(msgspec.Struct, frozen=True):
    """What the two texts say; None where there is no such text. ``remats`` None: nobody could hear them."""

    hlo: compiled.Program | None
    stablehlo: lowered.Reading | None
    remats: list[rematerialization.Remat] | None = None


NOTHING = Texts(None, None)


def analyse(hlo_text: str | None, stablehlo_text: str | None, around: Around | None = None) -> Texts:
    """Read what is there. Never raises: what could not be read is among ``problems``."""
    around = around or Around()
    made = compiled.analyse(hlo_text, mesh=around.mesh) if hlo_text is not None else None
    aliased = _aliased(made)
    read = None
    if stablehlo_text is not None:
        read = lowered.analyse(
            stablehlo_text,
            captured=around.captured,
            paths=around.paths,
            dropped=around.dropped,
            donated=around.donated,
            aliased=aliased,
        )
        if made is not None:
            read = msgspec.structs.replace(read, donation=(*read.donation, *_possible(made, read)))
            found = [_constrained(_weight(c, read), read, made) for c in made.collectives]
            made = msgspec.structs.replace(made, collectives=_beside(found, read))
    said = None
    if around.heard is not None:
        said = rematerialization.find(around.heard, hlo_text, around.mesh or _mesh(made, read))
    return Texts(made, read, said)


def peak_bytes(memory: Memory) -> int | None:
    """Arguments, results and temporaries less what they share: an upper bound of what one device holds.

    The compiler's own figure is not used: on CPU it leaves the temporaries out.
    """
    parts = (memory.argument_bytes, memory.output_bytes, memory.temp_bytes, memory.alias_bytes)
    if any(p is None for p in parts):
        return None
    argument, output, temp, alias = (p or 0 for p in parts)
    return argument + output + temp - alias


def _mesh(made: compiled.Program | None, read: lowered.Reading | None) -> Sequence[tuple[str, int]] | None:
    """The mesh that the texts themselves name, where it is one."""
    if made is not None and made.mesh:
        return made.mesh
    named = {m.axes for m in read.meshes if m.axes} if read is not None else set()
    return named.pop() if len(named) == 1 else None


def _weight(c: Collective, read: lowered.Reading) -> Collective:
    """``c`` as a gather of a weight, where the lowered text says that what it is multiplied with is split likewise."""
    if c.gathered is None:
        return c
    axes = {axis.partition(":")[0] for axis in c.axes or ()}
    beside = (a.sharding for a in read.arguments if a.index in c.gathered.beside)
    split = {
        axis.partition(":")[0] for s in beside if s is not None for d in s.dimensions or () for axis in d
    }
    return msgspec.structs.replace(c, weight=c.gathered.argument) if split & axes else c


def _constrained(c: Collective, read: lowered.Reading, made: compiled.Program) -> Collective:
    """``c`` with the user's sharding constraint that makes the partitioner insert it, where there is one.

    An all-gather brings together what a constraint says is not split over its axes, an all-to-all splits
    along another dimension what a constraint wants split over its axes there. It stands at the line of the
    constraint, or of what makes the constrained value; and its result on one device is the constrained value,
    or a step there.
    """
    if c.origin != "inserted" or c.kind not in ("all-gather", "all-to-all") or not c.bytes:
        return c
    line = (c.source.file, c.source.line) if c.source is not None else None
    axes = None if c.axes is None else {axis.partition(":")[0] for axis in c.axes}
    found: Constraint | None = None
    for one in read.sharding_constraints:
        here = (one.source.file, one.source.line)
        if line not in (here, *one.made_at) and (one.argument is None or c.op_name != one.argument):
            continue
        if c.op_name and one.backward is not None and one.backward is not ("transpose(" in c.op_name):
            continue
        wanted = _axes(one, made)
        device = one.bytes // math.prod(one.parts)
        if one.asked.open or wanted is None or (axes is None and wanted):
            continue
        if c.kind == "all-gather":
            fits = not wanted & (axes or set()) and _is_step(c.bytes, device, made.num_partitions or 1)
        else:
            fits = axes is not None and axes <= wanted and _is_step(c.bytes, device, 1)
        if fits and (found is None or line == here):
            found = one
    if found is None:
        return c
    split = _dimensions(found, made) or ()
    asked = partition_spec((*split, *((),) * (len(found.parts) - len(split))))
    return msgspec.structs.replace(c, constraint=asked, constrained_at=found.source)


def _beside(found: list[Collective], read: lowered.Reading) -> list[Collective]:
    """``found`` with the gathers that follow from others: where a constraint brings one operand of a product
    together over an axis, the partitioner brings the other one together over it, too, at the line of the
    product."""
    taken: dict[tuple[Frame | None, str | None], set[str]] = {}
    for c in found:
        if c.constrained_at is not None and c.kind == "all-gather":
            taken.setdefault((c.constrained_at, c.constraint), set()).update(c.axes or ())
    users: dict[tuple[str, int], set[Frame]] = {}
    for one in read.sharding_constraints:
        for line in one.used_at:
            users.setdefault(line, set()).add(one.source)

    def with_it(c: Collective) -> Collective:
        inserted = c.origin == "inserted" and c.kind == "all-gather" and c.constrained_at is None
        if not inserted or c.source is None or not c.axes:
            return c
        near = users.get((c.source.file, c.source.line), set())
        for (frame, asked), axes in taken.items():
            if frame in near and axes >= set(c.axes):
                return msgspec.structs.replace(c, constraint=asked, constrained_at=frame)
        return c

    return [with_it(c) for c in found] if taken else found


def _is_step(size: int, whole: int, most: int) -> bool:
    """Is ``size`` all of ``whole`` bytes, or one of its parts, of which ``most`` devices make at most so
    many? A type of half or double size, to which the compiler may convert first, counts as the same."""
    return any(
        total % (2 * size) == 0 < total and most % (total // (2 * size)) == 0
        for total in (whole, 2 * whole, 4 * whole)
    )


def _axes(one: Constraint, made: compiled.Program) -> set[str] | None:
    """The mesh axes that a constraint splits over; None: not known."""
    dimensions = _dimensions(one, made)
    return None if dimensions is None else {axis.partition(":")[0] for d in dimensions for axis in d}


def _dimensions(one: Constraint, made: compiled.Program) -> tuple[tuple[str, ...], ...] | None:
    if one.asked.dimensions is not None or math.prod(one.parts) == 1:
        return one.asked.dimensions or ()
    return shardings.read(one.asked.text, made.mesh).dimensions


def _possible(made: compiled.Program, read: lowered.Reading) -> list[Donation]:
    """Arguments that could have been donated where only the compiled program shows which results are free.

    A result of one type takes one argument: the first ones of that type are named.
    """
    told = {d.argument for d in read.donation}
    users = {a.index: a for a in read.arguments if a.role == "user"}
    left: dict[str, int] = {}
    found = []
    for p in made.memory.parameters:
        value = users.get(p.number)
        if value is None or p.number in told or p.donor or p.aliased or not p.matches:
            continue
        kind = p.shape.partition("{")[0]
        left.setdefault(
            kind, p.matches - sum(d.status == "possible" and d.type == value.type for d in read.donation)
        )
        if left[kind] > 0:
            left[kind] -= 1
            found.append(
                Donation(
                    value.name, "possible", None, value.index, value.type, value.bytes, value.device_bytes
                )
            )
    return found


def _aliased(made: compiled.Program | None) -> Collection[int] | None:
    """Positions of the program's own arguments that share a buffer with a result."""
    if made is None or made.module is None:
        return None
    return {a.parameter for a in made.memory.aliases}
