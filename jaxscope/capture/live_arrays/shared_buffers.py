"""Which live arrays lie in the memory of others: parts of an array on several devices, and other names for
one buffer.

Asks for addresses alone, and only of arrays that are of one size on one device with others: no device is
waited for, no buffer fetched.
"""

from __future__ import annotations

import collections
from collections.abc import Container, Iterable
from typing import Any

import msgspec

from jaxscope import jax_internals
from jaxscope.capture import shield

MOST_PARTS = 4096  # of arrays on several devices, asked for at one look: 2 to 8 us each


class Sized(msgspec.Struct, frozen=True, eq=False):
    """Arrays of one size: the devices of this process that hold them, bytes on each, and the arrays' ids."""

    devices: tuple[int, ...]
    bytes: int
    arrays: list[int]


class Shared:
    """What of the memory of live arrays is counted with others of them.

    Attributes:
      within: ids of arrays that lie wholly in the memory of others.
      overlap: bytes by device, where an array lies in another's memory on some of its devices alone.
    """

    def __init__(self) -> None:
        self.within: set[int] = set()
        self.overlap: dict[int, int] = {}

    def look(self, live: Iterable[Any], sizes: Iterable[Sized], named: Container[int]) -> None:
        """Find them among ``live``.

        Memory is counted with the array on the most devices, then with one in ``named``.
        """
        alike: collections.Counter[tuple[int, int]] = collections.Counter()
        sizes = [s for s in sizes if s.bytes]
        for s in sizes:
            for d in s.devices:
                alike[d, s.bytes] += len(s.arrays)
        of = {n: s for s in sizes if any(alike[d, s.bytes] > 1 for d in s.devices) for n in s.arrays}
        found = [a for a in live if id(a) in of]
        found.sort(key=lambda a: (-len(of[id(a)].devices), id(a) not in named))
        owned: set[tuple[int, int]] = set()
        # What parts look like of arrays whose addresses are not known.
        wholes: set[tuple[int, Any, Any, int]] = set()
        parts = 0
        for array in found:
            s = of[id(array)]
            parts += len(s.devices) if len(s.devices) > 1 else 0
            ask = parts <= MOST_PARTS or len(s.devices) == 1
            buffers = shield.attempt("array_buffers", jax_internals.buffers, array) if ask else None
            if buffers is None:
                self._unknown(array, s, wholes, named)
                continue
            again = [b for b in buffers if b in owned]
            if len(again) == len(buffers):
                self.within.add(id(array))
            else:
                for device, _ in again:
                    self.overlap[device] = self.overlap.get(device, 0) + s.bytes
                owned.update(buffers)

    def _unknown(self, array: Any, s: Sized, wholes: set[Any], named: Container[int]) -> None:
        """Without addresses: a part that JAX took of an array has the array's own record of a stack."""
        stack = id(jax_internals.made_at(array))
        if len(s.devices) > 1:
            shape = shield.attempt("shard_shape", array.sharding.shard_shape, array.shape)
            wholes.update((stack, array.dtype, shape, d) for d in s.devices)
        elif id(array) not in named and (stack, array.dtype, array.shape, s.devices[0]) in wholes:
            self.within.add(id(array))
