"""Live arrays as data: what one snapshot says of each group of them.

Owns the shape of the facts; what follows from them (replication, padding, growth) is analysis.
"""

from __future__ import annotations

import msgspec

from jaxscope.schema.keys import Frame


class ArrayGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arrays of one path, shape, dtype and sharding.

    Attributes:
      path: where the program holds them, container indices written ``[*]``; None: nowhere we looked. A
        path that ends in ``…`` stands for several below it.
      count: how many.
      shape, dtype: of each; None where they differ (a path with ``…``).
      bytes: of all of them together, as the program sees them.
      device_bytes: of all of them, on each device that holds them, as the device keeps them.
      sharding: an index into the snapshot's shardings; None: unknown, or several.
      committed, layout: None where they differ.
      origin: the user's line that made them; None: unknown, or several lines.
      held: without a path and ever more: what holds them, as a phrase; None: not looked for.
      shared: how many of them lie wholly in the memory of other arrays of the snapshot, with which their
        memory is counted: parts of them, or the same buffer under another name.
    """

    path: str | None = None
    count: int = 0
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None
    bytes: int | None = None
    device_bytes: int | None = None
    sharding: int | None = None
    committed: bool | None = None
    layout: str | None = None
    origin: Frame | None = None
    held: str | None = None
    shared: int = 0


class DeviceMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a device's allocator says (``Device.memory_stats()``), in bytes; None: it does not say."""

    device: int = 0
    in_use: int | None = None
    peak: int | None = None
    limit: int | None = None
