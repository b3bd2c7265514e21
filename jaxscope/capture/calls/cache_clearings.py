"""Detect whether JAX's caches were cleared between two calls, and which caches are nearly full. Only calls
that missed the fast path (JAX's C++ cache) are seen.

JAX does not announce that it clears a cache. But its cache of call signatures counts its misses: each call
that traces adds one, and clearing the cache sets the count to 0. So the cache was cleared if the count has
not grown since the last trace.
"""

from __future__ import annotations

from jaxscope import jax_internals


class Clearings:
    """Detects that JAX's caches were cleared.

    Attributes:
      count: how many checks (``check``) so far found that the caches had been cleared.
    """

    def __init__(self) -> None:
        self.count = 0
        self._misses = -1

    def check(self, traces: bool) -> dict[str, tuple[int, int]]:
        """Check, at the beginning of a call, whether JAX's caches were cleared since the previous check, and
        add one to ``count`` if so. Return the caches that are nearly full: name -> (entries, capacity).
        ``traces`` is whether this call will trace its function. Raises LookupError if the installed JAX does
        not have these caches."""
        gauge = jax_internals.cache_gauge()
        if gauge.misses < self._misses or (traces and gauge.misses == self._misses):
            self.count += 1
        self._misses = gauge.misses
        return gauge.full
