"""Word the facts of one compiled program."""

from __future__ import annotations

from jaxscope.analysis.hlo.branches import Bounds
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import Texts, peak_bytes
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

# A status of donation -> its words and their role.
DONATION = {
    "aliased": ("donated", ""),
    "unused": ("donated but unused", "warning"),
    "possible": ("could be donated if no caller uses it afterwards", "note"),
}
ORIGINS = {"asked": "requested by the program", "inserted": "inserted by the partitioner"}


def memory_parts(memory: Memory) -> list[tuple[str, int]]:
    """Return (name, bytes on one device) of each part of a program's memory that is known and not empty."""
    each = ((name, getattr(memory, field)) for field, name in MEMORY_PARTS.items())
    return [(name, n) for name, n in each if n]


def in_short(texts: Texts, memory: Memory | None) -> str:
    """Return ``49 fusions · 9 collectives (726 KiB over data) · peak 494 KiB``; empty if no text was read."""
    parts = []
    made = texts.hlo
    if made is not None and made.instructions:
        parts.append(count(made.fusions.total, "fusion"))
        if made.collectives:
            wire = ", ".join(
                f"{between(n)} over {axes}" for axes, n in sent_by_axes(made) if axes not in ("?", "")
            )
            parts.append(count(len(made.collectives), "collective") + (f" ({wire})" if wire else ""))
    if memory is not None and (peak := peak_bytes(memory)) is not None:
        parts.append(f"peak {size(peak)} per device")
    return " · ".join(parts)


def sent_by_axes(made: Compiled) -> list[tuple[str, Bounds]]:
    """Return (axes, bytes that a device sends over them in a call), the most first."""
    return sorted(made.wire_by_axes.items(), key=lambda i: (-(i[1].most or i[1].least), i[0]))


def between(n: Bounds) -> str:
    """Return ``3.4 MiB``, ``at least 3.4 MiB``, ``at most 3.4 MiB``, ``1.2 to 3.4
    MiB``; ``?``: nothing is known.
    """
    if n.exact is not None:
        return size(n.exact)
    if n.most is None:
        return f"at least {size(n.least)}" if n.least else "?"
    return f"{size(n.least)} to {size(n.most)}" if n.least else f"at most {size(n.most)}"


def axes(c: Collective) -> str:
    """Return ``data,model``; ``part of data`` for groups that are no axis; ``?`` if they are unknown."""
    if c.axes_around:
        return f"part of {','.join(c.axes_around)}"
    return "?" if c.axes is None else ",".join(c.axes) or "one device"


def executions(n: int | None) -> str:
    """Return ``4x``, ``?x``: how often an instruction runs in one call."""
    return "?x" if n is None else f"{n:,}x"


def times(c: Collective) -> str:
    """Return ``4x``, ``at most 4x`` in a branch of a conditional; empty for one that runs once in each
    call.
    """
    if c.branches:
        return "at most once" if c.executions == 1 else f"at most {executions(c.executions)}"
    return "" if c.executions == 1 else executions(c.executions)


def overlap(c: Collective) -> str:
    """Return whether an asynchronous collective overlaps with computation; empty if it is synchronous or
    unknown.
    """
    return {True: "overlapped", False: "not overlapped", None: ""}[c.overlap] if c.is_async else ""


def line_of(c: Collective, places: Places) -> str:
    """Return ``train.py:88 in main``; ``probably train.py:88 in main`` for a guess; empty if the line is
    unknown.
    """
    found = places.inside(c.source)
    return "" if found is None else f"probably {found}" if c.source_certainty == LIKELY else found


def reason(c: Collective, places: Places) -> str:
    """Return why a program has this collective: the sharding constraint, the FSDP weight, or its origin."""
    if c.constrained_at is not None:
        return f"sharding constraint {c.constraint or ''} at {places.inside(c.constrained_at)}"
    if c.weight is not None:
        return f"weight {c.weight} (FSDP)"
    return ORIGINS.get(c.origin or "", "")
