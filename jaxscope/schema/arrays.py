"""The data of a snapshot of live arrays. Derived figures (replication, padding, growth) are in
``model.arrays``."""

from __future__ import annotations

import msgspec

from jaxscope.schema.keys import Frame


class ArrayGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arrays of one path, shape, dtype and sharding.

    Attributes:
      path: the variable that leads to them, with container indices as ``[*]``; None: none was found. A path
        that ends in ``…`` stands for several below it.
      count: number of arrays.
      shape, dtype: of each; None where they differ (a path with ``…``).
      bytes: global bytes of all of them.
      device_bytes: bytes of all of them, on each device that holds them, with tiles and padding.
      sharding: an index into the snapshot's shardings; None: unknown, or several.
      committed, layout: None where they differ.
      origin: the user's line that created them; None: unknown, or several lines.
      held: of unnamed arrays that grow in number, a description of what holds them; None: not searched for.
      shared: number of them whose memory is another array's of the snapshot and is counted there: shards of
        it, or another array on the same buffer.
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
