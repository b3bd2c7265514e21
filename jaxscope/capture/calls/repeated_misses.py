"""Count fast-path misses that repeat with an unchanged key, instead of describing each.

A function with effects (``debug.print``, callbacks, Refs) leaves the fast path on every call. After UNCHANGED
misses in a row with arguments of the same types, each further one costs a dictionary look-up and an addition.
No change is missed: other shapes, dtypes or weak types give another jaxpr, and a
lowering or compilation sends its own events.
"""

from __future__ import annotations

from typing import Any

from jaxscope.capture.calls.in_progress import Weak
from jaxscope.capture.count import Count
from jaxscope.log.writer import Writer
from jaxscope.schema.events import MissesCounted

UNCHANGED = 3


class _Repeat:
    __slots__ = ("function", "misses", "same", "types")

    def __init__(self, function: str, types: tuple[type, ...], misses: Count) -> None:
        self.function = function
        self.types = types
        self.same = 0
        self.misses = misses


class RepeatedMisses:
    """For each jaxpr, the number of misses in a row during which nothing else happened."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_jaxpr = Weak()
        self._misses: dict[str, Count] = {}  # by function: what a jaxpr counted outlives it

    def counted(self, jaxpr: Any, arguments: tuple[Any, ...]) -> str | None:
        """Count a repeated miss and return the function's id; None for a miss that must be described."""
        item = self._by_jaxpr.items.get(id(jaxpr))  # as in its ``get``: a call costs up to 1 us here
        if item is None or item[0]() is not jaxpr:
            return None
        repeat: _Repeat = item[1]
        if repeat.same < UNCHANGED or repeat.types != (*map(type, arguments),):
            return None
        repeat.misses.add()
        return repeat.function

    def note(self, jaxpr: Any, arguments: tuple[Any, ...], function: str) -> None:
        """Note that a miss of ``jaxpr`` was described."""
        types = tuple(map(type, arguments))
        repeat: _Repeat | None = self._by_jaxpr.get(jaxpr)
        if repeat is None:
            repeat = _Repeat(function, types, self._count(function))
            self._by_jaxpr.put(jaxpr, repeat)
        repeat.same = repeat.same + 1 if repeat.types == types else 0
        repeat.types = types

    def flush(self) -> None:
        """Write the counts that grew to the log."""
        for _, misses in sorted(self._misses.items()):
            misses.flush()

    def _count(self, function: str) -> Count:
        if function not in self._misses:
            self._misses[function] = Count(
                self._writer, lambda count, cell: MissesCounted(function=function, count=count, cell=cell)
            )
        return self._misses[function]
