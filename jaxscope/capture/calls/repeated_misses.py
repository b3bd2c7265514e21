"""Fast-path misses that repeat with an unchanged key: counted, not described.

A function with effects (``debug.print``, callbacks, Refs) leaves the fast path on every call. After
UNCHANGED misses in a row whose arguments are of the same types, further ones cost a dictionary
look-up and an addition. Shapes, dtypes and weak types cannot have changed unseen (that is another
jaxpr), and a change that lowers or compiles is seen by its phase.
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
    """By jaxpr: how often in a row its calls missed the fast path and nothing else happened."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_jaxpr = Weak()
        self._misses: dict[str, Count] = {}  # by function: what a jaxpr counted outlives it

    def counted(self, jaxpr: Any, arguments: tuple[Any, ...]) -> str | None:
        """The function's id: one more of the same, counted, and nothing else is to be done. Else None."""
        repeat: _Repeat | None = self._by_jaxpr.get(jaxpr)
        if repeat is None or repeat.same < UNCHANGED or repeat.types != (*map(type, arguments),):
            return None
        repeat.misses.add()
        return repeat.function

    def note(self, jaxpr: Any, arguments: tuple[Any, ...], function: str) -> None:
        """A miss of ``jaxpr`` was described in full."""
        types = tuple(map(type, arguments))
        repeat: _Repeat | None = self._by_jaxpr.get(jaxpr)
        if repeat is None:
            repeat = _Repeat(function, types, self._count(function))
            self._by_jaxpr.put(jaxpr, repeat)
        repeat.same = repeat.same + 1 if repeat.types == types else 0
        repeat.types = types

    def flush(self) -> None:
        """Write to the log what grew."""
        for _, misses in sorted(self._misses.items()):
            misses.flush()

    def _count(self, function: str) -> Count:
        if function not in self._misses:
            self._misses[function] = Count(
                self._writer, lambda count, cell: MissesCounted(function=function, count=count, cell=cell)
            )
        return self._misses[function]
