"""Count calls that miss JAX's fast path again with unchanged arguments (repeated misses), instead of
describing each.

A function with effects (``debug.print``, callbacks, Refs) misses the fast path in every call. After UNCHANGED
such calls in a row with arguments of the same types, each further call is only counted, by a dictionary
look-up and an addition. No change is overlooked: other shapes, dtypes or weak types give another jaxpr, and
JAX announces lowerings and compilations by other events.
"""

from __future__ import annotations

from typing import Any

from jaxscope.capture.calls.in_progress import Weak
from jaxscope.capture.count import Count
from jaxscope.log.writer import Writer
from jaxscope.schema.events import MissesCounted

UNCHANGED = 3


class _Repeat:
    """The calls that missed the fast path with the same jaxpr.

    Attributes:
      function: the id of the function.
      types: the types of the arguments in the last call.
      same: how many calls in a row have had these types.
      misses: the count of the calls that were only counted, not described.
    """

    __slots__ = ("function", "misses", "same", "types")

    def __init__(self, function: str, types: tuple[type, ...], misses: Count) -> None:
        self.function = function
        self.types = types
        self.same = 0
        self.misses = misses


class RepeatedMisses:
    """Counts, for each jaxpr, the calls in a row that missed the fast path with the same argument types. The
    first ones are described in the log. All further ones are only counted, by function."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_jaxpr = Weak()
        self._misses: dict[str, Count] = {}  # by function, because the counts outlive the jaxprs

    def counted(self, jaxpr: Any, arguments: tuple[Any, ...]) -> str | None:
        """Count a call that missed JAX's fast path, and return the id of its function, if the last few calls
        with the same ``jaxpr`` had arguments of the same types. Otherwise return None: the caller has to
        write this call to the log in full."""
        item = self._by_jaxpr.items.get(id(jaxpr))  # as in its ``get``: a call costs up to 1 us here
        if item is None or item[0]() is not jaxpr:
            return None
        repeat: _Repeat = item[1]
        if repeat.same < UNCHANGED or repeat.types != (*map(type, arguments),):
            return None
        repeat.misses.add()
        return repeat.function

    def note(self, jaxpr: Any, arguments: tuple[Any, ...], function: str) -> None:
        """Remember that a call missed the fast path with ``jaxpr`` and was described in the log. After
        UNCHANGED such calls in a row with the same types of arguments, ``counted`` only counts the next ones.

        Args:
          jaxpr: the jaxpr of the call.
          arguments: its arguments.
          function: the id of its function.
        """
        types = tuple(map(type, arguments))
        repeat: _Repeat | None = self._by_jaxpr.get(jaxpr)
        if repeat is None:
            repeat = _Repeat(function, types, self._count(function))
            self._by_jaxpr.put(jaxpr, repeat)
        repeat.same = repeat.same + 1 if repeat.types == types else 0
        repeat.types = types

    def flush(self) -> None:
        """Write to the log the counts that have changed."""
        for _, misses in sorted(self._misses.items()):
            misses.flush()

    def _count(self, function: str) -> Count:
        """Return the count of those calls of ``function`` that were only counted, not described."""
        if function not in self._misses:
            self._misses[function] = Count(
                self._writer, lambda count, cell: MissesCounted(function=function, count=count, cell=cell)
            )
        return self._misses[function]
