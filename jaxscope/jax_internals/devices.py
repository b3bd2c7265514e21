"""Convert the devices of a mesh or a sharding to text: their ids, in order."""

from __future__ import annotations

import zlib
from typing import Any

LONGEST = 200  # characters of devices in another order than their ids'


def device_ranges(ids: list[int]) -> str:
    """Return ``0-3,8`` for ``[0,1,2,3,8]``, in the order of the ids."""
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
    """Return the ids of its devices, with a checksum if they are too long; None if it has none (an
    AbstractMesh)."""
    try:  # the property of an AbstractMesh raises ValueError
        ids = [d.id for d in mesh.devices.flat]
    except (AttributeError, ValueError):
        return None
    text = device_ranges(ids)
    return (text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({zlib.crc32(text.encode()):08x})") or None
