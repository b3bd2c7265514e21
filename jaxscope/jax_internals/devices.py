"""Devices of a mesh or a sharding as text: their ids, in their order."""

from __future__ import annotations

import zlib
from typing import Any

LONGEST = 200  # characters of devices in another order than their ids'


def device_ranges(ids: list[int]) -> str:
    """``[0,1,2,3,8]`` -> ``0-3,8``; the order is the mesh's, so it is kept."""
    parts: list[str] = []
    start = previous = None
    for i in [*ids, None]:
        if start is not None and (i is None or previous is None or i != previous + 1):
            parts.append(str(start) if start == previous else f"{start}-{previous}")
            start = i
        elif start is None:
            start = i
        previous = i
    return ",".join(parts)


def of_mesh(mesh: Any) -> str | None:
    """The ids of its devices, told apart also where the text is cut; None: it has none (AbstractMesh, an empty one)."""
    try:  # an AbstractMesh says so with ValueError
        ids = [d.id for d in mesh.devices.flat]
    except (AttributeError, ValueError):
        return None
    text = device_ranges(ids)
    return (text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({zlib.crc32(text.encode()):08x})") or None
