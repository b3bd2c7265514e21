"""Count calls that miss JAX's fast path (the C++ cache) again with unchanged arguments, instead of describing
each of them.

A function with effects (``debug.print``, callbacks, Refs) misses the fast path in every call. After UNCHANGED
repetitions in a row with arguments of the same types, each further call is only counted, by a dictionary
look-up and an addition. This overlooks no change: arguments with another shape, dtype or weak type give
another jaxpr, and JAX announces lowerings and compilations by other events.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from jaxscope.capture.count import Count
from jaxscope.log.writer import Writer
from jaxscope.schema.events import MissesCounted

UNCHANGED = 3


class Repeat(NamedTuple):
    """One jaxpr whose calls miss JAX's fast path (the C++ cache), and how alike these calls are.

    Attributes:
      jaxpr: a weak reference to the jaxpr.
      types: the Python classes of the arguments of the latest call.
      function: the id of the function.
      misses: the counter of the function's calls that have no event of their own in the log; one for all
        its jaxprs.
      same: how many times in a row the argument types were the same as in the call before.
    """

    jaxpr: weakref.ref[Any]
    types: tuple[type, ...]
    function: str
    misses: Count
    same: int


class RepeatedMisses:
    """Decides whether a call that misses JAX's fast path (the C++ cache) is described in the log. In a row of
    calls with the same jaxpr and the same argument types, only the first few are described. All others are
    counted by function.

    Attributes:
      known: ``id`` of a jaxpr -> its Repeat, if the next call with the same argument types is only counted.
        The id of a dead jaxpr can be used again, so compare ``Repeat.jaxpr``, too.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.known: dict[int, Repeat] = {}
        self._described: dict[int, Repeat] = {}  # the jaxprs whose next call is described, by id
        self._misses: dict[str, Count] = {}  # by function, because the counts outlive the jaxprs

    def counted(self, jaxpr: Any, arguments: tuple[Any, ...]) -> str | None:
        """Count a call that missed JAX's fast path (the C++ cache), if the log already describes enough calls
        in a row with the same ``jaxpr`` and argument types. Return the id of its function; None if the call
        was not counted."""
        repeat = self.known.get(id(jaxpr))
        if repeat is None or repeat.jaxpr() is not jaxpr or repeat.types != (*map(type, arguments),):
            return None
        repeat.misses.add()
        return repeat.function

    def note(self, jaxpr: Any, arguments: tuple[Any, ...], function: str) -> None:
        """Remember a call that missed JAX's fast path (the C++ cache) and was described in the log, by its
        ``jaxpr`` and the types of its ``arguments``. After several such calls in a row (UNCHANGED),
        ``counted`` counts the next ones. ``function`` is the id of the function."""
        number, types = id(jaxpr), (*map(type, arguments),)
        repeat = self.known.pop(number, None) or self._described.pop(number, None)
        if repeat is None or repeat.jaxpr() is not jaxpr:
            try:
                ref = weakref.ref(jaxpr, lambda _: self._forget(number))
            except TypeError:
                return
            repeat = Repeat(ref, types, function, self._count(function), 0)
        else:
            repeat = repeat._replace(types=types, same=repeat.same + 1 if repeat.types == types else 0)
        (self.known if repeat.same >= UNCHANGED else self._described)[number] = repeat

    def _forget(self, number: int) -> None:
        # Remove the entry of the dead jaxpr whose ``id()`` was ``number``.
        self.known.pop(number, None)
        self._described.pop(number, None)

    def flush(self) -> None:
        """Write to the log the counts that have changed."""
        for _, misses in sorted(self._misses.items()):
            misses.flush()

    def _count(self, function: str) -> Count:
        """Return the counter of the calls of ``function`` (an id) that are not described in the log."""
        if function not in self._misses:
            self._misses[function] = Count(
                self._writer, lambda count, cell: MissesCounted(function=function, count=count, cell=cell)
            )
        return self._misses[function]
