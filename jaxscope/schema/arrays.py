"""The data of a snapshot, a list of all live ``jax.Array`` objects of a process at one moment.

Figures that are derived from snapshots (replication, padding, growth) are in ``model.arrays``.
"""

from __future__ import annotations

import msgspec

from jaxscope.schema.keys import Frame

# Values of Holder.kind.
CONTAINER, DICT, OBJECT, CLOSURE, FRAME = "container", "dict", "object", "closure", "frame"
TRACE, UNSEEN = "trace", "unseen"


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that refers to arrays and so keeps them alive.

    Attributes:
      kind: container (a list, tuple, set or deque), dict, object, closure (a variable of a closure), frame (a
        local variable of a function that runs), trace (what JAX keeps of a trace, in its caches) or unseen
        (Python sees no object that refers to the arrays: they are kept by a cache or an object in C++).
      name: the name of the class of a container, dict or object, of the function of a frame, or of JAX's
        class that has a trace. None: there is no name.
      key: the key under which a dict has the arrays, as Python writes it (``'x'``, ``3``); None: unknown, or
        neither text nor an integer.
      count: the number of items of a container; None: the object is no container.
    """

    kind: str = ""
    name: str | None = None
    key: str | None = None
    count: int | None = None


class ArrayGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """The live arrays of a snapshot that have the same path, shape, dtype and sharding.

    Attributes:
      path: the variable that leads to the arrays, with ``[*]`` instead of container indices:
        ``state.params[*]``. None: no variable was found. If the path ends with ``…``, the group has arrays of
        several paths with this beginning; ``…`` alone: of any paths.
      shape, dtype: shape and dtype of each array; None: unknown, or they differ, because jaxscope has merged
        the smallest groups.
      bytes: bytes of all arrays of the group. Equal copies on several devices count once. None: unknown.
      device_bytes: bytes that all arrays of the group take on each device that has a part of them, with tiles
        and padding; None: unknown.
      sharding: an index into the snapshot's list of shardings (``ArraysSeen.shardings``); None: the arrays
        have none.
      committed: whether the arrays are committed to their devices; None: they differ, or unknown.
      layout: the order of the axes in memory; None: they differ, or unknown.
      origin: the user's line that created the arrays; None: unknown, or several lines.
      held: in logs of older versions, ``holder`` in words: ``a list of 40``; else None.
      shared: number of these arrays that use the memory of another array in the snapshot: they are shards of
        it, or have the same buffer. Their bytes are contained in ``bytes`` and ``device_bytes``.
      holder: the object that refers to most of the arrays; None: unknown. jaxscope searches for it if the
        arrays have no path and their number grows.
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
    holder: Holder | None = None


class DeviceMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures of a device's allocator (``Device.memory_stats()``).

    Attributes:
      device: JAX's id of the device.
      in_use, peak, limit: bytes in use now, the most bytes in use so far, and the most that the allocator may
        use; None: the allocator does not report this figure.
    """

    device: int = 0
    in_use: int | None = None
    peak: int | None = None
    limit: int | None = None
