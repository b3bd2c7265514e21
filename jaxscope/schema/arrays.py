"""The data of a snapshot of live arrays. Derived figures (replication, padding, growth) are in
``model.arrays``."""

from __future__ import annotations

import msgspec

from jaxscope.schema.keys import Frame


class ArrayGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arrays of one path, shape, dtype and sharding.

    Attributes:
      path: the variable that leads to the arrays, with container indices written ``[*]``; None: no variable
        was found. If the path ends in ``…``, the group has arrays of several paths below it.
      count: number of arrays.
      shape, dtype: shape and dtype of each array; None: they differ (a path with ``…``).
      bytes: global bytes of all arrays together.
      device_bytes: bytes of all arrays together, on each device that holds them, with tiles and padding.
      sharding: an index into the snapshot's shardings; None: unknown, or several.
      committed, layout: whether the arrays are committed, and their layout; None: they differ.
      origin: the user's line that created the arrays; None: unknown, or several lines.
      held: if the arrays have no name and become more, the objects that refer to them, in words; None: not
        searched for.
      shared: number of these arrays that use the memory of another array in the snapshot, which counts the
        bytes: they are shards of it, or use the same buffer.
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
    """The figures of a device's allocator (``Device.memory_stats()``) in bytes; None if it has no such
    figure."""

    device: int = 0
    in_use: int | None = None
    peak: int | None = None
    limit: int | None = None
