"""Detect whether JAX's caches were cleared between two misses, and how full the bounded caches are.

JAX announces neither. Its signature cache counts misses, and clearing sets the count to 0. Every traced call
adds one: if the count has not grown since the last trace, the cache was cleared.
"""

from __future__ import annotations

from jaxscope import jax_internals


class Clearings:
    """``count``: how often the caches of this process were cleared so far."""

    def __init__(self) -> None:
        self.count = 0
        self._misses = -1

    def look(self, traces: bool) -> dict[str, tuple[int, int]]:
        """Note, at the beginning of a miss, whether the caches were cleared since the last one (``count``).

        Return the caches that are nearly full, as (entries, capacity).
        ``traces``: whether the call will trace.
        """
        gauge = jax_internals.cache_gauge()
        if gauge.misses < self._misses or (traces and gauge.misses == self._misses):
            self.count += 1
        self._misses = gauge.misses
        return gauge.full
