"""Write facts about one compiled program as text."""

from __future__ import annotations

from typing import NamedTuple

from jaxscope.analysis.hlo.axes import Axes
from jaxscope.analysis.hlo.axes import text as axes_text
from jaxscope.analysis.hlo.branches import Bounds
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import Texts, peak_bytes
from jaxscope.model.records import Compilation
from jaxscope.present.text import Places, count, size
from jaxscope.schema.findings import LIKELY
from jaxscope.schema.keys import Memory

MEMORY_PARTS = {
    "argument_bytes": "arguments",
    "output_bytes": "results",
    "temp_bytes": "temporaries",
    "alias_bytes": "shared by arguments and results",
    "code_bytes": "code",
}


class Donated(NamedTuple):
    """The words for the status of a donated argument, or of one that could be donated.

    Attributes:
      words: the status as text, for a place with room: ``could be donated if no caller uses it afterwards``.
      short: the status in fewer words: ``could be donated``.
      style: the role (``present.spans``) of both texts; empty: no role.
    """

    words: str
    short: str
    style: str


DONATION = {
    "aliased": Donated("donated", "donated", ""),
    "unused": Donated("donated but unused", "donated but unused", "warning"),
    "possible": Donated("could be donated if no caller uses it afterwards", "could be donated", "note"),
}
ORIGINS = {"asked": "requested by the program", "inserted": "inserted by the partitioner"}


def memory_parts(memory: Memory) -> list[tuple[str, int]]:
    """Return (name, bytes on one device) for each part of a program's memory that is known and not 0:
    ``("arguments", 1024)``."""
    each = ((name, getattr(memory, field)) for field, name in MEMORY_PARTS.items())
    return [(name, n) for name, n in each if n]


def memory_of(c: Compilation) -> Memory | None:
    """Return the compiler's memory analysis of the program that ``c`` compiled. None if unknown, or if ``c``
    compiled nothing."""
    return None if c.compiled is None else c.compiled.memory


def peak_bytes_of(c: Compilation) -> int | None:
    """Return the peak memory of the program that ``c`` compiled, in bytes on one device: arguments, results
    and temporaries, minus what arguments and results share. None if unknown, or if ``c`` compiled nothing."""
    memory = memory_of(c)
    return None if memory is None else peak_bytes(memory)


def in_short(texts: Texts, memory: Memory | None) -> str:
    """Return a summary of a program in one line: ``49 fusions · 9 collectives (726.0 KiB over data) · peak
    494.0 KiB per device``. The bytes of the collectives are those that one device sends in one call. The text
    is empty if nothing is known.

    Args:
      texts: the parsed StableHLO and HLO of the program.
      memory: the compiler's memory analysis; None: unknown.
    """
    parts = []
    hlo = texts.hlo
    if hlo is not None and hlo.instructions:
        parts.append(count(hlo.fusions.total, "fusion"))
        if hlo.collectives:
            wire = ", ".join(
                f"{bytes_within(n)} over mesh {'axis' if len(over) == 1 else 'axes'} {axes_text(over)}"
                for over, n in sent_by_axes(hlo)
                if over
            )
            parts.append(count(len(hlo.collectives), "collective") + (f" ({wire})" if wire else ""))
    if memory is not None and (peak := peak_bytes(memory)) is not None:
        parts.append(f"peak memory {size(peak)} per device")
    return " · ".join(parts)


def sent_by_axes(program: Compiled) -> list[tuple[Axes, Bounds]]:
    """Return (mesh axes, bounds of the bytes that a device sends in one call) for each set of mesh axes, the
    most bytes first."""
    return sorted(program.wire_by_axes.items(), key=lambda i: (-(i[1].most or i[1].least), axes_text(i[0])))


def bytes_within(n: Bounds) -> str:
    """Return a number of bytes of which only the bounds ``n`` are known: ``3.4 MiB`` (bounds are equal), ``at
    least 3.4 MiB``, ``at most 3.4 MiB`` or ``1.2 MiB to 3.4 MiB``; ``?`` if nothing is known."""
    if n.exact is not None:
        return size(n.exact)
    if n.most is None:
        return f"at least {size(n.least)}" if n.least else "?"
    return f"{size(n.least)} to {size(n.most)}" if n.least else f"at most {size(n.most)}"


def axes(c: Collective) -> str:
    """Return the mesh axes over which the collective ``c`` communicates: ``data,model``; ``?`` if they are
    unknown, ``one device`` if there are none. ``part of data``: each group of communicating devices covers
    only a part of that axis."""
    if c.axes_around:
        return f"part of {','.join(c.axes_around)}"
    return over_axes(c.over)


def over_axes(over: Axes) -> str:
    """Return the mesh axes ``over`` as text: ``data,model``; ``?`` if they are unknown, ``one device`` if
    there are none."""
    return axes_text(over) or "one device"


def executions(n: int | None) -> str:
    """Return ``n``, how often an instruction runs in one call of the program, as text: ``4x``; ``?x`` for
    None."""
    return "?x" if n is None else f"{n:,}x"


def times(c: Collective) -> str:
    """Return how often the collective ``c`` runs in one call of the program: ``4x``; empty if it runs once.
    In a branch of a conditional, which may not be taken: ``at most 4x`` or ``at most once``."""
    if c.branches:
        return "at most once" if c.executions == 1 else f"at most {executions(c.executions)}"
    return "" if c.executions == 1 else executions(c.executions)


def overlap(c: Collective) -> str:
    """Return ``overlapped`` if the devices compute while the collective ``c`` communicates, else ``not
    overlapped``. Empty if the collective is synchronous, or if the program's schedule does not show it."""
    return {True: "overlapped", False: "not overlapped", None: ""}[c.overlap] if c.is_async else ""


def line_of(c: Collective, places: Places) -> str:
    """Return the source line of the collective ``c``: ``train.py:88 in main``; empty if unknown. If it is
    only the line of a neighboring instruction: ``probably train.py:88 in main``. ``places`` shortens file
    names."""
    found = places.inside(c.source)
    return "" if found is None else f"probably {found}" if c.source_certainty == LIKELY else found


def reason(c: Collective, places: Places) -> str:
    """Return why a program has the collective ``c``: ``sharding constraint P('data') at train.py:88 in
    main``, ``weight params['w'] (FSDP)`` (it collects a sharded weight), ``requested by the program`` or
    ``inserted by the partitioner``. Empty if unknown. ``places`` shortens file names."""
    if c.constrained_at is not None:
        return f"sharding constraint {c.constraint or ''} at {places.inside(c.constrained_at)}"
    if c.weight is not None:
        return f"weight {c.weight} (FSDP)"
    return ORIGINS.get(c.origin or "", "")
