"""Describe the devices of a mesh or a sharding by their ids, as text: ``0-3,8``."""

from __future__ import annotations

import zlib
from typing import Any

LONGEST = 200  # characters; only devices that are not in the order of their ids need as many


def device_ranges(ids: list[int]) -> str:
    """Return the device ids ``ids`` as ranges, in the given order: ``[0, 1, 2, 3, 8]`` gives ``0-3,8``."""
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
    """Return the ids of the devices of ``mesh`` in mesh order as ranges: ``0-3,8``. None if the mesh has no
    devices (AbstractMesh). A text longer than LONGEST characters is cut and ends in a checksum of the whole
    text."""
    try:  # the property of an AbstractMesh raises ValueError
        ids = [d.id for d in mesh.devices.flat]
    except (AttributeError, ValueError):
        return None
    text = device_ranges(ids)
    return (text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({zlib.crc32(text.encode()):08x})") or None
