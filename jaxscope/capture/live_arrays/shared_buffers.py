"""Find live arrays that share memory: several arrays on one buffer, and shards that were taken from an array
on several devices.

Only addresses are read, and only those of arrays that have the same size on a device as another array.
Reading them waits for no device and fetches no buffer.
"""

from __future__ import annotations

import collections
from collections.abc import Container, Iterable
from typing import Any

import msgspec

from jaxscope import jax_internals
from jaxscope.capture import shield

MAX_SHARDS = 4096  # shards of arrays on several devices whose addresses one snapshot reads: 2 to 8 us each


class SameSize(msgspec.Struct, frozen=True, eq=False):
    """Live arrays that have the same size and are on the same devices.

    Attributes:
      devices: the ids of those devices that belong to this process.
      bytes: the size of one of the arrays on each device.
      arrays: the ``id()`` of each array.
    """

    devices: tuple[int, ...]
    bytes: int
    arrays: list[int]


class SharedBuffers:
    """Finds which live arrays share memory, so that shared memory is counted only once.

    Attributes:
      within: ids of arrays whose whole memory is already counted with other arrays.
      overlap: id of a device -> bytes on this device that are already counted with other arrays. They belong
        to arrays that are not in ``within``, because only a part of their memory is shared.
    """

    def __init__(self) -> None:
        self.within: set[int] = set()
        self.overlap: dict[int, int] = {}

    def search(self, live: Iterable[Any], sizes: Iterable[SameSize], named: Container[int]) -> None:
        """Find the arrays of ``live`` that share memory, and record them in ``within`` and ``overlap``.

        Each buffer is counted with one array: the one on the most devices, and among equals one to which a
        variable leads. Every other array of the buffer is added to ``within`` if it shares memory on all of
        its devices. If it shares memory only on some of them, ``overlap`` gets its bytes on these devices.

        Args:
          live: the live arrays.
          sizes: the live arrays, grouped by size and devices.
          named: contains the ids of the arrays to which a variable leads.
        """
        arrays_of_size: collections.Counter[tuple[int, int]] = collections.Counter()
        sizes = [s for s in sizes if s.bytes]
        for s in sizes:
            for d in s.devices:
                arrays_of_size[d, s.bytes] += len(s.arrays)
        size_of = {
            n: s for s in sizes if any(arrays_of_size[d, s.bytes] > 1 for d in s.devices) for n in s.arrays
        }
        candidates = [a for a in live if id(a) in size_of]
        candidates.sort(key=lambda a: (-len(size_of[id(a)].devices), id(a) not in named))
        owned: set[tuple[int, int]] = set()
        # (stack, dtype, shape, device) of each shard of arrays whose addresses are unknown.
        unknown_shards: set[tuple[int, Any, Any, int]] = set()
        shards = 0
        for array in candidates:
            s = size_of[id(array)]
            shards += len(s.devices) if len(s.devices) > 1 else 0
            affordable = shards <= MAX_SHARDS or len(s.devices) == 1
            buffers = shield.attempt("array_buffers", jax_internals.buffers, array) if affordable else None
            if buffers is None:
                self._without_addresses(array, s, unknown_shards, named)
                continue
            if not all(address for _, address in buffers):
                continue  # memory ran out before it was computed: all such arrays have the address 0
            shared = [b for b in buffers if b in owned]
            if len(shared) == len(buffers):
                self.within.add(id(array))
            else:
                for device, _ in shared:
                    self.overlap[device] = self.overlap.get(device, 0) + s.bytes
                owned.update(buffers)

    def _without_addresses(
        self, array: Any, s: SameSize, unknown_shards: set[Any], named: Container[int]
    ) -> None:
        """Add ``array``, whose address is unknown, to ``within`` if it is probably a shard of an array on
        several devices: no variable leads to it, and its creation stack, dtype, shape and device equal those
        of such a shard.

        Args:
          s: the size and the devices of ``array``.
          unknown_shards: (``id()`` of the stack, dtype, shape, device) of each shard of the arrays on several
            devices. If ``array`` is on several devices, its shards are added.
          named: contains the ids of the arrays to which a variable leads.
        """
        stack = id(jax_internals.made_at(array))
        if len(s.devices) > 1:
            shape = shield.attempt("shard_shape", array.sharding.shard_shape, array.shape)
            unknown_shards.update((stack, array.dtype, shape, d) for d in s.devices)
        elif id(array) not in named and (stack, array.dtype, array.shape, s.devices[0]) in unknown_shards:
            self.within.add(id(array))
