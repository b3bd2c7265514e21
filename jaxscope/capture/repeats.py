"""Fast-path misses that repeat with an unchanged key: counted, not described.

A function with effects (``debug.print``, callbacks, Refs) leaves the fast path on every call. After
UNCHANGED misses in a row whose arguments are of the same types, further ones cost a dictionary
look-up and an addition. Shapes, dtypes and weak types cannot have changed unseen (that is another
jaxpr), and a change that lowers or compiles is seen by its phase.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from jaxscope.capture.calls import Weak
from jaxscope.schema.events import MissesCounted

UNCHANGED = 3
INTERVAL_NS = 100_000_000


class _Repeat:
    __slots__ = ("due", "function", "same", "total", "types", "written")

    def __init__(self, function: str, types: tuple[type, ...]) -> None:
        self.function = function
        self.types = types
        self.same = 0
        self.total = 0
        self.written = 0
        self.due = 0


class Repeats:
    """By jaxpr: how often in a row its calls missed the fast path and nothing else happened."""

    def __init__(self, emit: Callable[[MissesCounted], None]) -> None:
        self._emit = emit
        self._by_jaxpr = Weak()
        self._sums: dict[str, int] = {}

    def counted(self, jaxpr: Any, arguments: tuple[Any, ...]) -> str | None:
        """The function's id: one more of the same, counted, and nothing else is to be done. Else None."""
        repeat: _Repeat | None = self._by_jaxpr.get(jaxpr)
        if repeat is None or repeat.same < UNCHANGED or repeat.types != tuple(map(type, arguments)):
            return None
        repeat.total += 1
        now = time.monotonic_ns()
        if now >= repeat.due:
            repeat.due = now + INTERVAL_NS
            self.flush()
        return repeat.function

    def note(self, jaxpr: Any, arguments: tuple[Any, ...], function: str) -> None:
        """A miss of ``jaxpr`` was described in full."""
        types = tuple(map(type, arguments))
        repeat: _Repeat | None = self._by_jaxpr.get(jaxpr)
        if repeat is None:
            repeat = _Repeat(function, types)
            self._by_jaxpr.put(jaxpr, repeat)
        repeat.same = repeat.same + 1 if repeat.types == types else 0
        repeat.types = types

    def flush(self) -> None:
        """Write the counts that grew; a function's count is the sum over its jaxprs."""
        grown: set[str] = set()
        for repeat in self._by_jaxpr.values():
            if repeat.total != repeat.written:
                # Summed by name, so that what a jaxpr counted outlives it.
                self._sums[repeat.function] = (
                    self._sums.get(repeat.function, 0) + repeat.total - repeat.written
                )
                repeat.written = repeat.total
                grown.add(repeat.function)
        for function in sorted(grown):
            self._emit(MissesCounted(function=function, count=self._sums[function]))
