"""Both texts of one program together: what was lowered and what the compiler made of it.

Each text knows what the other does not: the StableHLO the user's lines, constants and donation, the HLO
what really runs. Either may be missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from jaxscope.analysis import remats
from jaxscope.analysis.hlo import program as compiled
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.stablehlo import reading as lowered
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.schema.keys import Captured, Memory

# Of what ``analyse`` says: a reader's cache made by another version is not read.
VERSION = 10
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
    remats: list[remats.Remat] | None = None


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
            made = msgspec.structs.replace(made, collectives=[_weight(c, read) for c in made.collectives])
    said = None
    if around.heard is not None:
        said = remats.find(around.heard, hlo_text, around.mesh or _mesh(made, read))
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
