"""Write facts about live arrays as text: dtype and shape, placement, time of a snapshot, bytes on devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxscope.analysis.sharding import Cell
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.present.spans import Span, joined
from jaxscope.present.text import brief, size

UNNAMED = "unnamed"


def form(g: Group) -> str:
    """Return dtype and shape of the arrays in the group ``g``: ``float32[512,512]``. If the shapes differ or
    are unknown: ``float32``; if the dtypes do: ``various``."""
    shape = "" if g.shape is None else f"[{','.join(map(str, g.shape))}]"
    return f"{brief(g.dtype, 40)}{shape}" if g.dtype is not None else "various"


def forms(g: Group) -> str:
    """Return dtype and shape of the arrays in the group ``g``: ``float32[8]`` for one array, ``12x
    float32[8]`` for several."""
    return form(g) if g.count == 1 else f"{g.count:,}x {form(g)}"


def placement(g: Group) -> list[Span]:
    """Return how the arrays in the group ``g`` are placed on the devices: ``P('data', None) on
    data=4,model=2, 2 copies, 12.0 KiB of padding``. An unknown sharding is ``?``. Only unusual facts follow
    the sharding: memory kind, copies, padding on all devices together, memory shared with other arrays,
    layout."""
    parts: list[list[Span]] = [["?" if g.sharding is None else brief(g.sharding.text, 120)]]
    if g.memory_kind not in (None, "device", "unpinned_host"):
        parts.append([brief(g.memory_kind, 40)])
    if g.replication is not None and g.replication > 1:
        parts.append([(f"{g.replication} copies", "warning")])
    if g.padding_bytes:
        parts.append([(f"{size(g.padding_bytes)} of padding", "warning")])
    if g.shared:
        which = "" if g.shared == g.count else f"{g.shared:,} of them "
        parts.append([f"{which}sharing memory with other arrays"])
    if g.shape is not None and g.layout not in (None, str(tuple(range(len(g.shape))))):
        parts.append([f"layout {brief(g.layout, 40)}"])
    return joined(parts, ", ")


def moment(s: Snapshot) -> str:
    """Return when the snapshot ``s`` of the live arrays was taken: ``after step 381``, ``when memory ran
    out``."""
    event = {
        "exit": "at the end",
        "asked": "at jaxscope.snapshot()",
        "exhausted": "when memory ran out",
        "time": "while the program ran",
    }.get(s.why)
    if event is not None:
        return event
    if s.step:
        return f"after step {s.step:,}"
    return "before the first step" if s.step == 0 else "before a compilation"


def total(s: Snapshot) -> str:
    """Return the bytes of all arrays in the snapshot ``s``, summed over all devices of the process: ``64.9
    MiB``. If the devices or sizes of some arrays are unknown: ``at least 64.9 MiB``."""
    return size(s.bytes) if s.bytes is not None else f"at least {size(s.known_bytes)}"


def spread(used: Iterable[int]) -> str:
    """Return the bytes on each device as text: ``1.0 MiB each`` or ``1.0 MiB to 1.2 MiB each``. ``used`` has
    the bytes of each device; it must not be empty."""
    amounts = list(used)
    low, high = size(min(amounts)), size(max(amounts))
    return f"{low} each" if low == high else f"{low} to {high} each"


def slices(c: Cell, shape: Sequence[int]) -> str:
    """Return the part ``c`` of an array as text, the part that one device holds: ``[0:256, :]``, or
    ``nothing: padding`` if the part is empty although the array is not. ``shape`` is the shape of the whole
    array."""
    if any(begin >= end for begin, end in c.slices) and all(shape):
        return "nothing: padding"
    ranges = [":" if (b, e) == (0, n) else f"{b}:{e}" for (b, e), n in zip(c.slices, shape, strict=True)]
    return f"[{', '.join(ranges)}]"
