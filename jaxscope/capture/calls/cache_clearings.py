"""Whether JAX's caches were cleared between two misses, and how full the bounded ones are.

JAX announces neither. Its signature cache counts misses, and clearing sets the count to 0: every call
that is traced adds one, so a count that has not grown since the last trace was set back.
"""

from __future__ import annotations

from jaxscope import jax_internals


class Clearings:
    """``count``: how often the caches were seen cleared so far in this process."""

    def __init__(self) -> None:
        self.count = 0
        self._misses = -1

    def look(self, traces: bool) -> dict[str, tuple[int, int]]:
        """Read the gauge at the beginning of a miss; ``traces``: its signature was not in the cache.

        Returns (entries, capacity) of the caches that are full or nearly.
        """
        gauge = jax_internals.cache_gauge()
        if gauge.misses < self._misses or (traces and gauge.misses == self._misses):
            self.count += 1
        self._misses = gauge.misses
        return gauge.full
